"""The environments of a prime-rl file: language tasks, research tasks and trees of them, and any other of verifiers.

MLGym's tasks, as air-agent writes them, are not ours: those that have a counterpart are translated to our re-creations
of the same games and data, with other opponents, seeds and splits, so that scores of the two are not to be compared. In
a tree the policy directs another model, the executor; there are three such environments, which differ in how many
attempts they really make.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from operant.spec.dialects.conversion import Section, is_number
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


TASKS = {
    **{name: name for name in ("gsm8k", "math", "mbpp", "humaneval", "ifeval", "reasoning_gym")},
    "reasoning_gym_env": "reasoning_gym",
}
GENERATED = {"gym": "dataset", "seed": "seed", "num_train_examples": "size", "num_eval_examples": "eval_size"}
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
        chosen = orchestrator.only("trajectory_strategy", ("branching", "interleaved"), known) or "interleaved"
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
