"""Environments of research tasks in prime-rl files, as air-agent writes them: MLGym's tasks by their configs.

MLGym's tasks are not ours: those that have a counterpart are translated to our re-creations of the same games and data,
with other opponents, seeds and splits, so that scores of the two are not to be compared.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from operant.spec.dialects.conversion import Section
from operant.spec.reading.diagnostics import did_you_mean

RECREATED = {
    "battleOfSexes": "battle_of_sexes",
    "prisonersDilemma": "prisoners_dilemma",
    "blotto": "blotto",
    "titanic": "titanic",
    "imageClassificationFMnist": "fashion_mnist",
    "3SATTime": "sat",
    "rlMountainCarContinuous": "mountain_car",
    "regressionKaggleHousePrice": "diamonds",
}
NOTES = {
    "titanic": ", by the true labels of a hidden split: MLGym's are those of its sample submission",
    "diamonds": ", the prices of diamonds in the place of houses",
    "sat": ", scored by decisions and not by seconds",
}
SIGNS = {"task_configs", "max_turns", "num_examples_per_task", "container_type", "training_timeout"}
TREE_SIGNS = {"node_budget", "executor_url", "executor_model", "reward_scheme"}
TREE = {
    "task": "the research task",
    "node_budget": "nodes of the tree",
    "executor_url": "the server of the model that carries out directions",
    "executor_model": "that model",
    "max_actions": "its commands for one node",
    "num_train_examples": "episodes to train on",
    "num_eval_examples": "episodes to evaluate with",
    "env_gpu": "the sandbox's GPU",
    "reward_scheme": "how nodes are rewarded",
    "reward_batch_size": "scores that a reward looks back on",
    "v7_tau": "the score from which a node is worth all",
    "seed": "the seed of the episodes",
}
LEFT_OUT = {
    "env_gpu": "left out: the tasks need no GPU",
    "container_type": "left out: the best sandbox of this machine is used; the argument sandbox of a task names one",
    "image_name": "left out: a sandbox shows the task's files and this machine's Python, and no image",
    "training_timeout": "left out: each task limits its commands itself (limits of its task.yaml)",
    "save_trajectories": "left out: every episode is kept, in the run's episodes.jsonl",
    "trajectory_dir": "left out: episodes are kept in the run's directory",
    "seed": "left out: the run's seed decides",
}


def is_research(arguments: Section) -> bool:
    """Whether an environment's arguments are those of research tasks."""
    return bool((SIGNS | TREE_SIGNS) & set(arguments.data))


def research(section: Section, key: str, arguments: Section) -> list[dict[str, Any]]:
    """The tasks of such an environment; none, and a refusal, where the policy would direct another model."""
    if TREE_SIGNS & set(arguments.data):
        named = ", ".join(f"{each} ({TREE[each]})" for each in arguments.data if each in TREE)
        why = "lets the policy direct another model through a tree of attempts, which is not trained here"
        section.conversion.refuse(
            section.at(key), why, f"understood: {named}; a tree search evaluates a policy instead"
        )
        arguments.skip()
        return []
    parts = [part for place in range(_count(arguments)) if (part := _part(arguments, place)) is not None]
    _episodes(arguments, parts)
    arguments.drop(LEFT_OUT)
    arguments.get("max_turns")
    arguments.close()
    return parts


def _count(arguments: Section) -> int:
    configs = arguments.get("task_configs")
    if not isinstance(configs, list) or not configs:
        arguments.conversion.refuse(arguments.at("task_configs"), "is no list of tasks", "such as blotto.yaml")
        return 0
    return len(configs)


def _part(arguments: Section, place: int) -> dict[str, Any] | None:
    conversion, config, at = (
        arguments.conversion,
        str(arguments.get("task_configs")[place]),
        (*arguments.at("task_configs"), place),
    )
    name = PurePosixPath(config).name.removesuffix(".yaml").removesuffix(".yml")
    known = {theirs.lower(): ours for theirs, ours in RECREATED.items()}
    if name.lower() not in known:
        near = did_you_mean(name, RECREATED)
        hint = f"{near} or " if near else ""
        conversion.refuse(
            at, "is a task that is not re-created here", f"{hint}env.name mlgym:FILE runs it from a checkout"
        )
        return None
    ours = known[name.lower()]
    conversion.remark(at, f"{ours}: our re-creation{NOTES.get(ours, ' with its own opponents, seeds and splits')}")
    return {"name": ours}


def _episodes(arguments: Section, parts: list[dict[str, Any]]) -> None:
    """How many instances of each task there are."""
    if arguments.get("num_examples_per_task") is not None:
        count = arguments.whole("num_examples_per_task", 1)
        for part in parts:
            part["arguments"] = {"instances": count}
        said = "instances of each task, which differ in their seeds"
        arguments.conversion.remark(arguments.at("num_examples_per_task"), said)
