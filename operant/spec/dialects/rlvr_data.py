"""The data of an rlvr-experiments file: its loaders as tasks, its mixtures, and how long completions may be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.reading.diagnostics import did_you_mean


@dataclass(frozen=True)
class Loader:
    """One of their loaders: our task, the tokens of its completions, its problems if known, and its arguments here."""

    task: str
    tokens: int | None = None
    problems: int | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    fixed: tuple[tuple[str, Any], ...] = ()


MINI = (("n_samples", "samples"), ("seed", "seed"))
LOADERS = {
    "gsm8k": Loader("gsm8k", 512, 7473),
    "math": Loader("math", 1024, 7500, (("level", "level"),)),
    "mbpp": Loader("mbpp", 512, 374),
    "humaneval": Loader("humaneval", 512, 164),
    "ifeval": Loader("rlvr_ifeval", 2048, 14973),
    "if_multi_constraints": Loader("if_multi_constraints", 2048),
    "deepscaler": Loader("deepscaler", 1024, 40315),
    "apps": Loader("apps", 512, None, (("difficulty", "difficulty"),)),
    "allenai_rlvr": Loader("allenai_rlvr", None, None, (("datasets", "datasets"),)),
    "allenai_gsm8k_mini": Loader("allenai_rlvr", 512, None, MINI, (("datasets", ["gsm8k"]), ("samples", 10))),
    "dummy": Loader("one_question", 512, 64, (("num_samples", "samples"),)),
}
ELSEWHERE = ("aime", "beyondaime", "ifbench", "sft_jsonl")
OWN_FILE = "has no task here; write its problems as JSONL (env.name: jsonl)"
IN_PATHS = {"gsm8k": "gsm8k", "ifeval": "if_multi_constraints", "math": "math", "mbpp": "mbpp"}
MODES = {"weighted": "weighted", "sequential": "sequential"}


def data(top: Section, key: str) -> None:
    """The task, or the mixture of tasks."""
    section, conversion = top.below(key), top.conversion
    if conversion.kind == "sft" or conversion.is_given("env.name"):
        section.skip()
        return
    name = section.need("dataset")
    if name == "mixed":
        _mixture(section)
        return
    loader = _loader(section, "dataset") if name is not None else None
    if loader is None:
        section.skip()
        return
    section.set("dataset", "env.name", loader.task)
    for ours, value, origin in _arguments(section, loader):
        section.set(origin, f"env.text.arguments.{ours}", value)
    section.lacks({"count": "has no counterpart: the task's problems are all used"})


def _mixture(section: Section) -> None:
    section.set("dataset", "env.name", "mixture")
    mode = section.only("mode", MODES, "is neither weighted nor sequential", "weighted")
    section.set("mode", "env.text.mode", mode or "weighted")
    parts = [part for part in map(_part, section.items("datasets")) if part is not None]
    if not parts:
        section.refuse("datasets", "names no task to mix")
    seen: Counter[str] = Counter()
    for part in parts:
        seen[part["name"]] += 1
        if seen[part["name"]] > 1:
            part["label"] = f"{part['name']}_{seen[part['name']]}"
    section.set("datasets", "env.text.mixture", parts)
    section.drop({"seed": "left out: run.seed orders the problems"})


def _part(section: Section) -> dict[str, Any] | None:
    """One task of a mixture, in native words."""
    key = "dataset" if "dataset" in section.data else "name"
    loader = _loader(section, key)
    if loader is None:
        section.skip()
        return None
    arguments = {ours: value for ours, value, _ in _arguments(section, loader)}
    own = {name: value for name in ("weight", "count", "order") if (value := section.get(name)) is not None}
    section.drop({"name": "left out: a label"})
    return {"name": loader.task, **own, **({"arguments": arguments} if arguments else {})}


def _loader(section: Section, key: str) -> Loader | None:
    """What is known of a loader; None, and a refusal, where there is no task for it."""
    name = str(section.need(key))
    if name in LOADERS:
        return LOADERS[name]
    known = (*LOADERS, *ELSEWHERE, "mixed")
    hint = "" if name in ELSEWHERE else did_you_mean(name, known) or f"there are {', '.join(LOADERS)}, mixed"
    section.refuse(key, OWN_FILE if name in ELSEWHERE else "is no loader that is known here", hint)
    return None


def _arguments(section: Section, loader: Loader) -> list[tuple[str, Any, str]]:
    """The arguments of the task, each with the key that it comes from."""
    found = {ours: (value, "name") for ours, value in loader.fixed}
    for theirs, ours in loader.arguments:
        if section.get(theirs) is not None:
            found[ours] = (section.get(theirs), theirs)
    if section.get("split", "train") != "train":
        section.lose("split", "has no counterpart: a task trains on its training problems")
    others = {"level", "num_samples", "difficulty", "datasets", "n_samples"} - dict(loader.arguments).keys()
    section.lacks(dict.fromkeys(sorted(others), "is no argument of this loader"))
    section.drop({"seed": "left out: run.seed orders the problems", "split": "left out: it is so always"})
    return [(ours, value, origin) for ours, (value, origin) in found.items()]


def problems(top: Section) -> int | None:
    """How many problems a pass over the data has; None where that is not known."""
    section = top.below("data")
    parts = section.items("datasets") if section.get("dataset") == "mixed" else [section]
    counts = [_count(part) for part in parts]
    return None if None in counts or not counts else sum(each for each in counts if each is not None)


def _count(section: Section) -> int | None:
    loader = LOADERS.get(str(section.get("dataset") or section.get("name")))
    limited = section.get("count") or section.get("num_samples")
    if is_number(limited):
        return int(limited)
    return loader.problems if loader is not None and section.get("level") is None else None


def max_tokens(sampling: Section, key: str) -> None:
    """The longest completion: each dataset has its own there, which counts before the one of the file."""
    conversion, name = sampling.conversion, sampling.top.below("data").get("dataset")
    stated, loader = sampling.get(key), LOADERS.get(str(name))
    alone = conversion.kind == "distill" and sampling.whole("n", 1) == 1
    if conversion.kind == "sft":
        return
    if alone or (name != "mixed" and (loader is None or loader.tokens is None)):
        sampling.copy(key, "env.text.max_tokens")
        return
    length = loader.tokens if loader is not None else None
    if length is not None:
        sampling.set(key, "env.text.max_tokens", length)
    if stated is not None and stated != length:
        own = f"{length:,}" if length is not None else "each dataset's own length"
        sampling.remark(key, f"{own}: the datasets have limits that count before this one")


def evaluated(section: Section, key: str) -> None:
    """The task that a policy which only imitates is evaluated on: the one whose name is in the file's."""
    conversion, path = section.conversion, str(section.get(key))
    if conversion.is_given("env.name"):
        return
    found = next((task for name, task in IN_PATHS.items() if name in path.rpartition("/")[2]), None)
    if found is None:
        section.refuse(key, "does not say which task to evaluate on", "give it by -s env.name=VALUE")
        return
    section.set(key, "env.name", found, f"evaluated on {found}; their program evaluates nothing")
