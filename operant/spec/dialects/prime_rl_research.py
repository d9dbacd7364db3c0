"""Environments of research tasks in prime-rl files, as air-agent writes them: MLGym's tasks, alone or as trees.

MLGym's tasks are not ours: those that have a counterpart are translated to our re-creations of the same games and data,
with other opponents, seeds and splits, so that scores of the two are not to be compared. In a tree the policy directs
another model, the executor; there are three such environments, which differ in how many attempts they really make.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from operant.spec.dialects.conversion import Section
from operant.spec.reading.diagnostics import did_you_mean
from operant.spec.reading.document import KeyPath

RECREATED = {
    "battleOfSexes": "battle_of_sexes",
    "prisonersDilemma": "prisoners_dilemma",
    "blotto": "blotto",
    "titanic": "titanic",
    "imageClassificationFMnist": "fashion_mnist",
    "fashionMnist": "fashion_mnist",
    "3SATTime": "sat",
    "rlMountainCarContinuous": "mountain_car",
    "mountaincar": "mountain_car",
    "regressionKaggleHousePrice": "diamonds",
    "regression": "diamonds",
}
NOTES = {
    "titanic": ", by the true labels of a hidden split: MLGym's are those of its sample submission",
    "diamonds": ", the prices of diamonds in the place of houses",
    "sat": ", scored by decisions and not by seconds",
}
SIGNS = {"task_configs", "task_config_path", "max_turns", "num_examples_per_task", "container_type", "training_timeout"}
TREE_SIGNS = {"node_budget", "executor_url", "executor_model", "reward_scheme"}
LEFT_OUT = {
    "env_gpu": "left out: the tasks need no GPU",
    "container_type": "left out: the best sandbox of this machine is used; the argument sandbox of a task names one",
    "image_name": "left out: a sandbox shows the task's files and this machine's Python, and no image",
    "training_timeout": "left out: each task limits its commands itself (limits of its task.yaml)",
    "save_trajectories": "left out: every episode is kept, in the run's episodes.jsonl",
    "trajectory_dir": "left out: episodes are kept in the run's directory",
    "agent_config_path": "left out: the words around a task are ours",
    "task": "left out: the task's file says it",
    "seed": "left out: the run's seed decides",
}
REWARDS = {
    "v6_binary": "binary",
    "v6_moving_best": "binary",
    "v7_fixed_tier": "target",
    "v8_global_best": "moving_best",
    "v8_percentile": "percentile",
    "v9_percentile": "percentile",
}
MOVING = ("moving_best", "percentile")
TARGET, URL, MODEL = 0.88, "http://localhost:9001/v1", "Qwen/Qwen3-4B-Instruct-2507"
LAST_TURN = "the last of its turns is never carried out, so there is one attempt less"
DIRECTED = "directed_research: the policy directs, the executor works; a message says PARENT and DIRECTION"

Dialogue = dict[str, tuple[Any, KeyPath]]


def is_research(arguments: Section) -> bool:
    """Whether an environment's arguments are those of research tasks."""
    return bool((SIGNS | TREE_SIGNS) & set(arguments.data))


def research(section: Section, key: str, plain: str, arguments: Section) -> tuple[list[dict[str, Any]], Dialogue]:
    """The tasks of such an environment, and its settings of dialogues."""
    if TREE_SIGNS & set(arguments.data):
        return _tree(section, key, plain, arguments)
    parts = [
        {"name": task} for each, at in _configs(arguments) if (task := _recreated(arguments, each, at)) is not None
    ]
    if arguments.get("num_examples_per_task") is not None:
        count = arguments.whole("num_examples_per_task", 1)
        parts = [{**part, "arguments": {"instances": count}} for part in parts]
        arguments.remark("num_examples_per_task", "instances of each task, which differ in their seeds")
    turns = next((each for each in ("max_turns", "max_steps") if arguments.get(each) is not None), None)
    dialogue: Dialogue = {} if turns is None else {"turns": (arguments.whole(turns, 1), arguments.at(turns))}
    arguments.drop(LEFT_OUT)
    arguments.close()
    return parts, dialogue


def _configs(arguments: Section) -> list[tuple[str, KeyPath]]:
    """The tasks that are named, by their files or by name, and where."""
    configs = arguments.get("task_configs")
    if isinstance(configs, list) and configs:
        return [(str(each), (*arguments.at("task_configs"), place)) for place, each in enumerate(configs)]
    key = "task_config_path" if arguments.get("task_config_path") is not None else "task"
    if configs is None and isinstance(arguments.get(key), str):
        return [(arguments.get(key), arguments.at(key))]
    arguments.refuse("task_configs", "is no list of tasks", "such as blotto.yaml")
    return []


def _recreated(arguments: Section, config: str, at: KeyPath) -> str | None:
    """Our re-creation of a task."""
    conversion = arguments.conversion
    name = PurePosixPath(config).name.removesuffix(".yaml").removesuffix(".yml")
    known = {theirs.lower(): ours for theirs, ours in RECREATED.items()}
    if name.lower() not in known:
        near = did_you_mean(name, RECREATED)
        hint = f"{near} or " if near else ""
        why = "is a task that is not re-created here"
        conversion.refuse(at, why, f"{hint}env.name mlgym:FILE runs it from a checkout")
        return None
    ours = known[name.lower()]
    by_name = "; only the file's name is read" if "$" in config else ""
    note = NOTES.get(ours, " with its own opponents, seeds and splits")
    conversion.remark(at, f"{ours}: our re-creation{note}{by_name}")
    return ours


def _tree(section: Section, key: str, plain: str, arguments: Section) -> tuple[list[dict[str, Any]], Dialogue]:
    """A tree of attempts. All of them begin with the task's own files there, whichever parent is named."""
    newest = plain.endswith(("_v3", "_v3_tree"))
    named = "task_name" if arguments.get("task_name") is not None else "task"
    task = _recreated(arguments, str(arguments.get(named, "titanic")), arguments.at(named))
    budget = max(1, arguments.whole("node_budget", 5))
    nodes = budget if newest else max(1, budget - 1)
    said = "attempts of a rollout" if newest else f"attempts of a rollout: {nodes}; {LAST_TURN}"
    arguments.remark("node_budget", said)
    section.remark(key, DIRECTED)
    instances = {
        "instances": arguments.whole("num_train_examples", 200),
        "eval_instances": max(1, arguments.whole("num_eval_examples", 20)),
    }
    given: dict[str, Any] = {
        "task": task,
        "nodes": nodes,
        "actions": arguments.whole("max_actions", 15 if plain.endswith("mlgym_env") else 20),
        "executor": arguments.get("executor_url", URL),
        "executor_model": arguments.get("executor_model", MODEL),
        "begin": "fresh",
        **({"lenient": True} if newest else {}),
        "turns": budget + 1 if newest else max(1, budget),
        "arguments": instances,
    }
    arguments.remark("executor_url", "OPERANT_API_KEY is its key; -s env.text.arguments.executor=MODEL")
    dialogue = _reward(arguments, plain, given)
    arguments.drop(LEFT_OUT)
    arguments.close()
    return ([] if task is None else [{"name": "directed_research", "arguments": given}]), dialogue


def _reward(arguments: Section, plain: str, given: dict[str, Any]) -> Dialogue:
    """What a tree earns; the first of the environments pays for its last attempt, the others for the best one."""
    at = arguments.at("reward_scheme")
    if plain.endswith("mlgym_env"):
        arguments.lacks({"reward_scheme": "is not read by this environment"})
        return {"reward": ("last", at)}
    known = f"has no counterpart: there are {', '.join(REWARDS)}"
    reward = arguments.only("reward_scheme", REWARDS, known, "v6_binary") or "binary"
    dialogue: Dialogue = {"reward": (reward, at)}
    if reward == "target":
        given["target"] = arguments.get("v7_tau", TARGET)
    else:
        arguments.drop({"v7_tau": "left out: reward_scheme does not look at it"})
    if reward in MOVING:
        every = arguments.whole("reward_batch_size", 8)
        dialogue["reward_every"] = (every, arguments.at("reward_batch_size"))
    arguments.drop({"reward_batch_size": "left out: reward_scheme looks at no other rollouts"})
    return dialogue
