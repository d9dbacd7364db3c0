"""What the table of rlvr-experiments cannot say of `roles` and of data.

Of roles: which one learns, its model, optimizer and precision. Of data: its loaders as tasks, its mixtures, and how
long completions may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.dialects.table import Row, read
from operant.spec.reading.diagnostics import did_you_mean

DTYPES = {"float32": "float32", "bfloat16": "bfloat16", "float16": "bfloat16"}


def roles(top: Section, rows: Mapping[str, Sequence[Row]]) -> None:
    """The trainer says model and optimizer; every other role must speak of the same model, but for the teacher."""
    found = top.items("roles")
    trainer = next((each for each in found if each.data.get("kind") == "titan" and _trains(each)), None)
    for role in found:
        kind = role.only("kind", ("titan", "vllm"), "is neither titan nor vllm")
        role.get("name")
        config = role.below("config")
        if kind == "titan" and role is not trainer:
            top.conversion.remark(role.path, "left out: the reference is a copy of the policy, kept beside the trainer")
            config.skip()
        elif kind is None:
            config.skip()
        else:
            read(config, rows[kind])
    if trainer is None:
        top.refuse("roles", "has no trainable role of the kind titan")


def _trains(role: Section) -> bool:
    config = role.data.get("config")
    return isinstance(config, dict) and config.get("trainable", True) is not False


def source_of(top: Section) -> tuple[Any, tuple[str | int, ...]]:
    """The model and where it is named: the trainer's own path, or else the one that the file names for its records."""
    for role in top.items("roles"):
        path = role.below("config").below("model").get("hf_assets_path") if role.data.get("kind") == "titan" else None
        if path is not None and _trains(role):
            return path, role.below("config").below("model").at("hf_assets_path")
    return top.below("model").get("path"), ("model", "path")


def model(section: Section, key: str) -> None:
    """The model that learns."""
    conversion, stated = section.conversion, section.get(key)
    source, origin = source_of(section.top)
    if source is None:
        section.refuse(key, "is missing, and no role names a model")
        return
    conversion.set("agent.model.source", source, origin)
    if stated is not None and stated != source:
        section.remark(key, f"left out: the trainer loads {source}")


def served_model(config: Section, key: str) -> None:
    """A server gets its weights from the trainer; the teacher has its own."""
    source, _ = source_of(config.top)
    role = config.conversion.theirs.data["roles"][config.path[1]]
    if role.get("name") != "teacher" and config.get(key, source) != source:
        config.lose(key, f"is another model than the trainer's, {source}")


def betas(optimizer: Section, key: str) -> None:
    """Both decays, with torchtitan's defaults."""
    optimizer.set(key, "agent.model.optimizer.betas", [optimizer.get("beta1", 0.9), optimizer.get("beta2", 0.95)])


def rates(schedule: Section, key: str) -> None:
    """The learning rate falls linearly over the whole run, or not at all."""
    kind, ratio = schedule.get("decay_type", "linear"), schedule.get(key, 1)
    if kind not in ("linear", "constant"):
        schedule.lose("decay_type", "has no counterpart: it falls linearly or not")
    if ratio == 0 or kind == "constant" or not schedule.data:
        schedule.get("min_lr_factor")
    elif ratio == 1:
        schedule.copy("min_lr_factor", "agent.model.optimizer.lr_end_fraction", 0.0)
    else:
        schedule.lose(key, "has no counterpart: it falls over the whole run or not at all")


def precision(training: Section, key: str) -> None:
    """The precision of passes, or else of the weights."""
    key = key if training.get(key) is not None else "dtype"
    if training.get(key) is None:
        return
    kind = training.only(key, DTYPES, "has no counterpart: there are float32 and bfloat16")
    training.set(key, "agent.model.dtype", kind or "float32")
    if training.get(key) == "float16":
        training.remark(key, "bfloat16 here: float16 would need a scaled loss")


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
    mode = section.only("mode", ("weighted", "sequential"), "is neither weighted nor sequential", "weighted")
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
