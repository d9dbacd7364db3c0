"""The environments of a prime-rl file: language tasks, research tasks, and any other environment of verifiers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.dialects.prime_rl_research import is_research, research
from operant.spec.reading.diagnostics import did_you_mean
from operant.spec.reading.document import KeyPath

TASKS = {
    "gsm8k": "gsm8k",
    "math": "math",
    "mbpp": "mbpp",
    "humaneval": "humaneval",
    "ifeval": "ifeval",
    "reasoning_gym": "reasoning_gym",
    "reasoning_gym_env": "reasoning_gym",
}
GENERATED = {"gym": "dataset", "seed": "seed", "num_train_examples": "size", "num_eval_examples": "eval_size"}


STRATEGIES = {"branching": "branching", "interleaved": "interleaved"}
ONE_TURN = "left out: these tasks have one turn, so both strategies are the same"


@dataclass(frozen=True)
class Source:
    """An environment: its tasks, the share of the problems that they have together, and the most turns of a rollout.

    `turns_at` is where the file says the turns; there are none of a language task.
    """

    parts: list[dict[str, Any]]
    ratio: float | None = None
    turns: int | None = None
    turns_at: KeyPath = ()
    talks: bool = False

    def weighted(self) -> list[dict[str, Any]]:
        """The tasks with their weights, where a ratio was given."""
        if self.ratio is None:
            return self.parts
        return [{**part, "weight": self.ratio / len(self.parts)} for part in self.parts]


def environments(orchestrator: Section, train: Section) -> None:
    """One task, or a mixture of them by their ratios; and how dialogues are held and learnt from."""
    older, newer = orchestrator.items("env"), train.items("source")
    conversion, origin = orchestrator.conversion, train.at("source") if newer else orchestrator.at("env")
    if not older and not newer:
        conversion.refuse(origin, "is missing: there is no environment to learn in")
    sources = [*map(_older, older), *map(_newer, newer)]
    buffer = orchestrator.below("buffer")
    ratios = buffer.get("env_ratios")
    if isinstance(ratios, list) and len(ratios) == len(sources) and all(map(is_number, ratios)):
        sources = [replace(source, ratio=ratio) for source, ratio in zip(sources, ratios, strict=True)]
    elif ratios is not None:
        conversion.refuse(
            buffer.at("env_ratios"), f"is not a list of numbers, one for each of {len(sources)} environments"
        )
    _dialogues(orchestrator, sources)
    parts = [part for source in sources for part in source.weighted()]
    if len(parts) == 1:
        conversion.set("env.name", parts[0]["name"], origin)
        for key, value in parts[0].get("arguments", {}).items():
            conversion.set(("env", "text", "arguments", key), value, origin)
    elif parts:
        conversion.set("env.name", "mixture", origin)
        conversion.set("env.text.mixture", parts, origin)


def _dialogues(orchestrator: Section, sources: list[Source]) -> None:
    """The turns of rollouts, said once where all agree, and what a rollout is to the learner."""
    conversion, said = orchestrator.conversion, [source for source in sources if source.turns is not None]
    for source in said:
        if len({each.turns for each in said}) == 1:
            conversion.set("env.text.dialogue.turns", source.turns, source.turns_at)
        else:
            for part in source.parts:
                part["arguments"] = {**part.get("arguments", {}), "turns": source.turns}
    if not any(source.talks for source in sources):
        orchestrator.drop({"trajectory_strategy": ONE_TURN})
    elif orchestrator.get("trajectory_strategy") is not None:
        known = "has no counterpart: there are branching and interleaved"
        chosen = orchestrator.only("trajectory_strategy", STRATEGIES, known)
        conversion.set("env.text.dialogue.strategy", chosen or "interleaved", orchestrator.at("trajectory_strategy"))


def _older(section: Section) -> Source:
    """An entry of `[[orchestrator.env]]`."""
    name, arguments = str(section.need("id")), section.below("args")
    section.drop({"name": "left out: a label", "address": "left out: environments run on this machine"})
    turns = arguments.whole("max_turns", 1) if is_research(arguments) and "max_turns" in arguments.data else None
    source = _source(section, "id", name, arguments, turns, arguments.at("max_turns"))
    section.close()
    return source


def _newer(section: Section) -> Source:
    """An entry of `[[orchestrator.train.source]]`."""
    env = section.below("env")
    taskset, agent = env.below("taskset"), env.below("agent")
    said = agent if agent.get("max_turns") is not None else taskset
    turns = said.whole("max_turns", 1) if said.get("max_turns") is not None and is_research(taskset) else None
    source = _source(taskset, "id", str(taskset.need("id")), taskset, turns, said.at("max_turns"))
    here = "left out: rollouts run on this machine, the policy is asked where it is trained"
    agent.drop(dict.fromkeys(("harness", "runtime", "model", "client", "timeout", "retries"), here))
    agent.lacks({"max_turns": "has no counterpart: the environment limits its turns itself"} if turns is None else {})
    agent.close()
    env.drop({"id": here})
    env.close()
    every = "has no counterpart: it is the same for every task"
    section.lacks(dict.fromkeys(("group_size", "sampling", "algo"), every))
    section.lacks({"curriculum": "has no counterpart: problems come in the order of the seed or of a file"})
    section.drop({"name": "left out: a label", "serve": "left out: environments run on this machine"})
    ratio = section.number("ratio")
    section.close()
    return replace(source, ratio=ratio)


def _source(section: Section, key: str, name: str, arguments: Section, turns: int | None, turns_at: KeyPath) -> Source:
    """The tasks of an environment, by its name and its arguments."""
    plain = name.rpartition("/")[2].partition("@")[0].replace("-", "_").lower()
    if is_research(arguments):
        return Source(research(section, key, arguments), None, turns, turns_at, talks=True)
    if plain in TASKS:
        return Source([_task(TASKS[plain], arguments)])
    return Source([_external(section, key, plain, arguments)], talks=True)


def _external(section: Section, key: str, plain: str, arguments: Section) -> dict[str, Any]:
    """Any other environment of verifiers, which takes its arguments as they are."""
    handed = {name: arguments.get(name) for name in arguments.unread()}
    near = did_you_mean(plain, TASKS)
    said = "runs as it is where verifiers and this environment are installed; the argument python names another Python"
    section.conversion.remark(section.at(key), f"{said}; {near}" if near else said)
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
