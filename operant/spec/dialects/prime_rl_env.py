"""The environments of a prime-rl file: those of a task in words, and those that research tasks will take."""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.ledger import Section
from operant.spec.problems import did_you_mean

TASKS = {
    "gsm8k": "gsm8k",
    "math": "math",
    "mbpp": "mbpp",
    "humaneval": "humaneval",
    "ifeval": "ifeval",
    "reasoning_gym": "reasoning_gym",
    "reasoning_gym_env": "reasoning_gym",
}
RESEARCH = {
    "task_configs": "the research tasks",
    "max_turns": "the turns of an episode",
    "num_examples_per_task": "episodes of each task in the data",
    "env_gpu": "the sandbox's GPU",
    "container_type": "the kind of sandbox",
    "image_name": "the sandbox's image",
    "training_timeout": "seconds of a command",
    "save_trajectories": "whether episodes are kept",
    "trajectory_dir": "where they are kept",
    "seed": "the seed of the episodes",
    "task": "the research task",
    "node_budget": "nodes of a tree of attempts",
    "executor_url": "the server of the model that carries out directions",
    "executor_model": "that model",
    "max_actions": "its commands for one node",
    "num_train_examples": "episodes to train on",
    "num_eval_examples": "episodes to evaluate with",
    "reward_scheme": "how nodes are rewarded",
    "reward_batch_size": "scores that a reward looks back on",
    "v7_tau": "the score from which a node is worth all",
}
SIGNS = {"task_configs", "node_budget", "executor_url", "executor_model"}
NOT_YET = "is an environment of research tasks, and research tasks are not there yet"
GENERATED = {"gym": "dataset", "seed": "seed", "num_train_examples": "size", "num_eval_examples": "eval_size"}


def environments(orchestrator: Section, train: Section) -> None:
    """One task, or a mixture of them by their ratios."""
    older, newer = orchestrator.items("env"), train.items("source")
    ratios = orchestrator.below("buffer").get("env_ratios")
    parts = [part for part in (*map(_older, older), *map(_newer, newer)) if part is not None]
    ledger, origin = orchestrator.ledger, train.at("source") if newer else orchestrator.at("env")
    if not older and not newer:
        ledger.refuse(origin, "is missing: there is no environment to learn in")
    if isinstance(ratios, list) and len(ratios) == len(parts):
        parts = [{**part, "weight": ratio} for part, ratio in zip(parts, ratios, strict=True)]
    if len(parts) == 1:
        ledger.set("env.name", parts[0]["name"], origin)
        for key, value in parts[0].get("arguments", {}).items():
            ledger.set(f"env.text.arguments.{key}", value, origin)
    elif parts:
        ledger.set("env.name", "mixture", origin)
        ledger.set("env.text.mixture", parts, origin)


def _older(section: Section) -> dict[str, Any] | None:
    """An entry of `[[orchestrator.env]]`."""
    name, arguments = section.need("id"), section.below("args")
    section.drop({"name": "left out: a label", "address": "left out: tasks run in this process"})
    found = _part(section, "id", str(name), arguments)
    section.close()
    return found


def _newer(section: Section) -> dict[str, Any] | None:
    """An entry of `[[orchestrator.train.source]]`."""
    env = section.below("env")
    taskset = env.below("taskset")
    name = str(taskset.need("id"))
    found = _part(taskset, "id", name, taskset)
    agent = "left out: tasks in words are answered by the policy itself, in one turn"
    env.drop({"agent": agent})
    env.close()
    ratio = section.get("ratio")
    every = "has no counterpart: it is the same for every task"
    section.lacks(dict.fromkeys(("group_size", "sampling", "algo"), every))
    section.lacks({"curriculum": "has no counterpart: problems come in the order of the seed or of a file"})
    section.drop({"name": "left out: a label", "serve": "left out: tasks run in this process"})
    section.close()
    return found if found is None or ratio is None else {**found, "weight": ratio}


def _part(section: Section, key: str, name: str, arguments: Section) -> dict[str, Any] | None:
    """The task of an environment, with its arguments; None, and a refusal, where there is none."""
    ledger, plain = section.ledger, name.rpartition("/")[2].partition("@")[0].replace("-", "_").lower()
    if SIGNS & set(arguments.data) or plain not in TASKS:
        research = bool(SIGNS & set(arguments.data))
        hint = _named(arguments) if research else did_you_mean(plain, TASKS) or f"there are {', '.join(TASKS)}"
        ledger.refuse(section.at(key), NOT_YET if research else "is no environment that is known here", hint)
        if not research:
            arguments.skip()
        arguments.close()
        return None
    return _task(TASKS[plain], arguments)


def _named(arguments: Section) -> str:
    """The arguments that were understood, each with what it says."""
    for key in RESEARCH:
        arguments.get(key)
    return "understood: " + ", ".join(f"{key} ({RESEARCH[key]})" for key in arguments.data if key in RESEARCH)


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
