"""The data of an rlvr-experiments file: its loaders as tasks, its mixtures, and how prompts are formatted."""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.conversion import Section
from operant.spec.reading.diagnostics import did_you_mean

TASKS = {name: name for name in ("gsm8k", "math", "mbpp", "humaneval", "ifeval")}
ELSEWHERE = (
    "deepscaler", "aime", "beyondaime", "apps", "if_multi_constraints", "ifbench", "allenai_rlvr",
    "allenai_gsm8k_mini", "dummy", "sft_jsonl",
)  # fmt: skip
OWN_FILE = "has no task here; write its problems as JSONL (env.name: jsonl)"
OTHER_ROWS = {
    "ifeval": "the prompts of the official IFEval, not of RLVR-IFeval",
    "humaneval": "problems of a set that is meant for evaluation",
}
MODES = {"weighted": "weighted", "sequential": "sequential"}


def data(section: Section) -> None:
    """The task, or the mixture of tasks."""
    conversion, name = section.conversion, section.need("dataset")
    if name == "mixed":
        _mixture(section)
        return
    task = _task(section, str(name)) if name is not None else None
    if task is not None:
        conversion.set("env.name", task, section.at("dataset"))
        for key, value in _arguments(section, task).items():
            conversion.set(f"env.text.arguments.{key}", value, section.at(key))
        section.lacks({"count": "has no counterpart: the task's problems are all used"})
    else:
        section.skip()
    section.close()


def _mixture(section: Section) -> None:
    conversion = section.conversion
    conversion.set("env.name", "mixture", section.at("dataset"))
    mode = section.only("mode", MODES, "is neither weighted nor sequential", "weighted")
    conversion.set("env.text.mode", mode or "weighted", section.at("mode"))
    parts = [part for part in map(_part, section.items("datasets")) if part is not None]
    if not parts:
        conversion.refuse(section.at("datasets"), "names no task to mix")
    conversion.set("env.text.mixture", parts, section.at("datasets"))
    section.drop({"seed": "left out: run.seed orders the problems"})
    section.close()


def _part(section: Section) -> dict[str, Any] | None:
    """One task of a mixture, in native words."""
    key = "dataset" if "dataset" in section.data else "name"
    task = _task(section, str(section.need(key)), key)
    if task is None:
        section.skip()
        return None
    part: dict[str, Any] = {"name": task}
    for own in ("weight", "count", "order"):
        value = section.get(own)
        if value is not None:
            part[own] = value
    arguments = _arguments(section, task)
    section.drop({"name": "left out: a label"})
    section.close()
    return {**part, "arguments": arguments} if arguments else part


def _task(section: Section, name: str, key: str = "dataset") -> str | None:
    """The native task of a loader; None, and a refusal, where there is none."""
    conversion = section.conversion
    if name in TASKS:
        if name in OTHER_ROWS:
            conversion.remark(section.at(key), OTHER_ROWS[name])
        return TASKS[name]
    known = (*TASKS, *ELSEWHERE, "mixed")
    hint = "" if name in ELSEWHERE else did_you_mean(name, known) or f"there are {', '.join(TASKS)}, mixed"
    conversion.refuse(section.at(key), OWN_FILE if name in ELSEWHERE else "is no loader that is known here", hint)
    return None


def _arguments(section: Section, task: str) -> dict[str, Any]:
    """The arguments of a loader, as far as the task takes it."""
    found: dict[str, Any] = {}
    level = section.get("level")
    if level is not None and task == "math":
        found["level"] = level
    elif level is not None:
        section.conversion.lose(section.at("level"), f"has no counterpart: {task} has no levels")
    if section.get("split", "train") != "train":
        section.conversion.lose(section.at("split"), "has no counterpart: a task trains on its training problems")
    section.lacks(dict.fromkeys(("num_samples", "difficulty", "datasets"), "has no counterpart"))
    section.drop({"seed": "left out: run.seed orders the problems", "split": "left out: it is so always"})
    return found


def data_iter(section: Section) -> None:
    """Order and format of the prompts: a task has its own words before and after a problem."""
    section.copy("order", "env.text.order")
    bare = section.get("skip_chat_template")
    if bare is not None:
        section.conversion.set("agent.model.template", "raw" if bare else "chat", section.at("skip_chat_template"))
    own = "has no counterpart: each task has its own words around a problem"
    section.lacks(dict.fromkeys(("system_prompt", "assistant_prefix"), own), ("",))
    section.close()
