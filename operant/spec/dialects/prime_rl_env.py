"""The environments of a prime-rl file: language tasks, research tasks and trees of them, and any other of verifiers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.dialects.prime_rl_research import is_research, research
from operant.spec.reading.diagnostics import did_you_mean
from operant.spec.reading.document import KeyPath

TASKS = {
    **{name: name for name in ("gsm8k", "math", "mbpp", "humaneval", "ifeval", "reasoning_gym")},
    "reasoning_gym_env": "reasoning_gym",
}
GENERATED = {"gym": "dataset", "seed": "seed", "num_train_examples": "size", "num_eval_examples": "eval_size"}
STRATEGIES = {"branching": "branching", "interleaved": "interleaved"}
ONE_TURN = "left out: these tasks have one turn, so both strategies are the same"
HERE = "left out: rollouts run on this machine, the policy is asked where it is trained"
EVERY = "has no counterpart: it is the same for every task"


@dataclass(frozen=True)
class Source:
    """An environment: its tasks, their share of the problems, and settings of dialogues with where each is said.

    It `talks` if its rollouts have many turns.
    """

    parts: list[dict[str, Any]]
    ratio: float | None = None
    dialogue: dict[str, tuple[Any, KeyPath]] = field(default_factory=dict)
    talks: bool = False

    def weighted(self) -> list[dict[str, Any]]:
        """The tasks with their weights, where a ratio was given."""
        if self.ratio is None:
            return self.parts
        return [{**part, "weight": self.ratio / len(self.parts)} for part in self.parts]


def environments(orchestrator: Section, key: str) -> None:
    """One task, or a mixture of them by their ratios; and how dialogues are held and learnt from."""
    train = orchestrator.below("train")
    older, newer = orchestrator.items(key), train.items("source")
    origin = train.at("source") if newer else orchestrator.at(key)
    if not older and not newer:
        orchestrator.conversion.refuse(origin, "is missing: there is no environment to learn in")
    sources = _with_ratios(orchestrator, [*map(_older, older), *map(_newer, newer)])
    _strategy(orchestrator, sources)
    _dialogues(orchestrator, sources)
    _tasks(orchestrator, [part for source in sources for part in source.weighted()], origin)


def _tasks(section: Section, parts: list[dict[str, Any]], origin: KeyPath) -> None:
    conversion = section.conversion
    if len(parts) == 1:
        conversion.set("env.name", parts[0]["name"], origin)
        for key, value in parts[0].get("arguments", {}).items():
            conversion.set(("env", "text", "arguments", key), value, origin)
    elif parts:
        conversion.set("env.name", "mixture", origin)
        conversion.set("env.text.mixture", parts, origin)


def _with_ratios(orchestrator: Section, sources: list[Source]) -> list[Source]:
    buffer = orchestrator.below("buffer")
    ratios = buffer.get("env_ratios")
    if isinstance(ratios, list) and len(ratios) == len(sources) and all(map(is_number, ratios)):
        return [replace(source, ratio=ratio) for source, ratio in zip(sources, ratios, strict=True)]
    if ratios is not None:
        buffer.refuse("env_ratios", f"is not a list of numbers, one for each of {len(sources)} environments")
    return sources


def _strategy(orchestrator: Section, sources: list[Source]) -> None:
    if not any(source.talks for source in sources):
        orchestrator.drop({"trajectory_strategy": ONE_TURN})
    elif orchestrator.get("trajectory_strategy") is not None:
        known = "has no counterpart: there are branching and interleaved"
        chosen = orchestrator.only("trajectory_strategy", STRATEGIES, known) or "interleaved"
        orchestrator.set("trajectory_strategy", "env.text.dialogue.strategy", chosen)


def _dialogues(section: Section, sources: list[Source]) -> None:
    """Settings of dialogues, said once where all environments agree; turns may be those of each task."""
    conversion = section.conversion
    for key in dict.fromkeys(key for source in sources for key in source.dialogue):
        said = [source.dialogue[key] for source in sources if key in source.dialogue]
        if len({str(value) for value, _ in said}) == 1:
            conversion.set(f"env.text.dialogue.{key}", *said[0])
        elif key == "turns":
            for source in sources:
                for part in source.parts if key in source.dialogue else ():
                    part["arguments"] = {**part.get("arguments", {}), "turns": source.dialogue[key][0]}
        else:
            conversion.lose(said[1][1], f"has no counterpart: one {key} serves all environments")


def _older(section: Section) -> Source:
    """An entry of `[[orchestrator.env]]`."""
    name, arguments = str(section.need("id")), section.below("args")
    section.drop({"name": "left out: a label", "address": "left out: environments run on this machine"})
    source = _source(section, "id", name, arguments)
    section.close()
    return source


def _newer(section: Section) -> Source:
    """An entry of `[[orchestrator.train.source]]`."""
    env = section.below("env")
    taskset, agent = env.below("taskset"), env.below("agent")
    source = _source(taskset, "id", str(taskset.need("id")), taskset)
    agent.drop(dict.fromkeys(("harness", "runtime", "model", "client", "timeout", "retries"), HERE))
    if agent.get("max_turns") is not None and is_research(taskset):
        source.dialogue["turns"] = (agent.whole("max_turns", 1), agent.at("max_turns"))
    else:
        agent.lacks({"max_turns": "has no counterpart: the environment limits its turns itself"})
    agent.close()
    env.drop({"id": HERE})
    env.close()
    section.lacks(dict.fromkeys(("group_size", "sampling", "algo"), EVERY))
    section.lacks({"curriculum": "has no counterpart: problems come in the order of the seed or of a file"})
    section.drop({"name": "left out: a label", "serve": "left out: environments run on this machine"})
    ratio = section.number("ratio")
    section.close()
    return replace(source, ratio=ratio)


def _source(section: Section, key: str, name: str, arguments: Section) -> Source:
    """The tasks of an environment, by its name and its arguments."""
    plain = name.rpartition("/")[2].partition("@")[0].replace("-", "_").lower()
    if is_research(arguments):
        parts, dialogue = research(section, key, plain, arguments)
        return Source(parts, None, dialogue, talks=True)
    if plain in TASKS:
        return Source([_task(TASKS[plain], arguments)])
    return Source([_external(section, key, plain, arguments)], talks=True)


def _external(section: Section, key: str, plain: str, arguments: Section) -> dict[str, Any]:
    """Any other environment of verifiers, which takes its arguments as they are."""
    handed = {name: arguments.get(name) for name in arguments.unread()}
    near = did_you_mean(plain, TASKS)
    said = "runs as it is where verifiers and this environment are installed; the argument python names another Python"
    section.remark(key, f"{said}; {near}" if near else said)
    name = f"verifiers:{plain}"
    return {"name": name, "arguments": handed} if handed else {"name": name}


def _task(task: str, arguments: Section) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if task == "reasoning_gym":
        for theirs, ours in GENERATED.items():
            if arguments.get(theirs) is not None:
                found[ours] = arguments.get(theirs)
    arguments.drop({"seed": "left out: the run's seed orders the problems"})
    taken = "has no counterpart: the task's problems are all used"
    arguments.lacks(dict.fromkeys(("num_train_examples", "num_eval_examples"), taken), (-1,))
    arguments.lacks({"system_prompt": "has no counterpart: each task has its own words around a problem"})
    arguments.close()
    return {"name": task, "arguments": found} if found else {"name": task}
