"""Really fork a small run with a changed value of every setting: it is refused by its rule, or it trains on."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from operant.engines import engine_of
from operant.errors import UsageError
from operant.launch.fork import create_fork
from operant.launch.prepare import create_trial
from operant.run.run import Run
from operant.spec.field_types import FieldType, field_type
from operant.spec.fields import Closed
from operant.spec.fork import check_fork
from operant.spec.reading.document import lookup, put
from operant.spec.schedules import ScheduleSpec
from operant.spec.schema import Spec

META = {
    "max_session": 1, "log_frequency": 64, "eval_frequency": 10_000, "save_frequency": 64,
    "eval_episodes": 1, "final_episodes": 1,
}  # fmt: skip
CARTPOLE = {"name": "CartPole-v1", "num_envs": 2, "max_frame": 128, "max_t": 40}
PENDULUM = {"name": "Pendulum-v1", "num_envs": 2, "max_frame": 128, "max_t": 20}
REPLAY = {"training_start": 16, "training_frequency": 8, "training_iter": 1}
NET = {"hidden": [8]}
SMALL = {"batch_size": 8, "max_size": 60}
GRPO = {
    "env": {"name": "copy", "max_frame": 16, "text": {"arguments": {"style": "bare", "letters": 2}, "workers": 1}},
    "agent": {
        "algorithm": {"name": "grpo", "group_size": 2, "batch_size": 4},
        "model": {"tiny": {"layers": 1, "width": 32, "heads": 2, "context": 32}, "slots": 4},
    },
    "meta": {"save_frequency": 8, "log_frequency": 8},
}
PARENTS: dict[str, dict[str, Any]] = {
    "ppo": {"env": CARTPOLE, "agent": {"algorithm": {"name": "ppo", "time_horizon": 16, "minibatch_size": 16}}},
    "a2c": {"env": CARTPOLE, "agent": {"algorithm": {"name": "a2c", "training_frequency": 16}}},
    "reinforce": {"env": CARTPOLE, "agent": {"algorithm": {"name": "reinforce", "training_frequency": 2}}},
    "sarsa": {"env": CARTPOLE, "agent": {"algorithm": {"name": "sarsa", "training_frequency": 16}}},
    "dqn": {"env": CARTPOLE, "agent": {"algorithm": {"name": "dqn", **REPLAY}, "memory": SMALL}},
    "dqn-ahead": {
        "env": CARTPOLE,
        "agent": {
            "algorithm": {"name": "dqn", "n_step": 3, **REPLAY},
            "memory": {"name": "prioritised", **SMALL},
            "net": {"optimizer": {"name": "rmsprop", "scheduler": {"name": "StepLR", "step_size": 5}}},
        },
    },
    "sac": {"env": PENDULUM, "agent": {"algorithm": {"name": "sac", **REPLAY}, "memory": SMALL}},
    "crossq": {"env": PENDULUM, "agent": {"algorithm": {"name": "crossq", **REPLAY}, "memory": SMALL}},
    "td3": {"env": PENDULUM, "agent": {"algorithm": {"name": "td3", **REPLAY}, "memory": SMALL}},
    "ppo_sil": {
        "env": CARTPOLE,
        "agent": {"algorithm": {"name": "ppo_sil", "time_horizon": 16, "minibatch_size": 16}, "memory": SMALL},
    },
    "fused-ppo": {
        "engine": "jax",
        "env": CARTPOLE,
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 16, "minibatch_size": 16}},
    },
    "grpo": GRPO,
}
# Of these the value is a matter of this machine or of another program, not of a checkpoint.
ELSEWHERE = (
    "meta.device", "meta.devices", "meta.compile", "meta.processes", "meta.cluster", "meta.ray", "meta.threads",
    "meta.precision", "env.vectorization", "agent.model.generator", "agent.model.url", "agent.model.vllm",
    "agent.algorithm.teacher",
)  # fmt: skip
# The faults that were reported, and one of every rule.
SAMPLE = (
    ("ppo", "agent.algorithm.normalize_v_targets"),
    ("ppo", "agent.algorithm.symlog"),
    ("ppo", "agent.algorithm.normalize_advantages"),
    ("ppo", "agent.net.optimizer.lr"),
    ("ppo", "agent.net.optimizer.scheduler"),
    ("dqn", "agent.algorithm.n_step"),
    ("dqn", "agent.memory.max_size"),
    ("dqn", "agent.memory.batch_size"),
)


def spec_of(name: str) -> Spec:
    data = copy.deepcopy(PARENTS[name])
    if name != "grpo":
        data["agent"]["net"] = {**NET, **data["agent"].get("net", {})}
    return Spec.model_validate({"name": "parent", **data, "meta": {**META, **data.get("meta", {})}})


def settings(section: Closed, path: str = "") -> Iterator[tuple[str, FieldType]]:
    """Every single setting of a spec, as it stands, with the type of its values."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Closed) and not isinstance(value, ScheduleSpec):
            yield from settings(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", field_type(field)


def others(kind: FieldType, value: Any) -> list[Any]:
    """Values that the setting might take instead."""
    if kind.choices:
        return [each for each in kind.choices if each != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [each for each in (value * 2, value * 4, value // 2, value / 2, value + 1, 1, 3, 0) if each != value]
    if isinstance(value, dict) and "start" in value:
        return [0.5, {**value, "end": value["end"] / 2}]
    if isinstance(value, list):
        return [[*value, *value[:1]], [each * 2 for each in value], [each / 2 for each in value], [8], ["x"]]
    if value is None:
        scheduler = {"name": "StepLR", "step_size": 3}
        return [2, 1, 0.5, 8, [16], "x", scheduler, {"rank": 2}, {"updates": 1}, {}]
    return [{"a": 1}] if isinstance(value, dict) else ["CartPole-v0", "Acrobot-v1", "sort"]


def changed(spec: Spec, path: str, kind: FieldType) -> Iterator[Spec]:
    """Specs that differ in one setting, as far as its other settings allow, and have frames to go."""
    data = spec.model_dump(mode="json")
    where = tuple(path.split("."))
    for value in others(kind, lookup(data, where)):
        try:
            found = Spec.model_validate(put(data, where, value))
        except ValidationError:
            continue
        if found != spec:
            yield found


@cache
def parent(name: str, root: Path) -> Run:
    """A run that has trained for half of its budget."""
    (run,) = create_trial(
        spec_of(name).model_dump(mode="json"), root=root, out=None, source_text="", source_suffix=".yaml", command=[]
    )
    engine_of(spec_of(name)).train(run, spec_of(name).env.max_frame // 2)
    return run


def fork(name: str, spec: Spec, root: Path) -> str:
    """What became of a child with these settings: a refusal, or how far it went."""
    run = parent(name, root)
    try:
        engine_of(spec).validate(spec)
        check_fork(spec_of(name), spec, "the parent", "spec.json")
        _, (child,) = create_fork(
            [run], spec.model_dump(mode="json"), root=root / "children", command=[], source_text=""
        )
    except UsageError as refused:
        return str(refused)
    engine_of(spec).train(child)
    assert child.state == "done", child.state
    return "done"


def walk(name: str, root: Path, paths: set[str] | None = None) -> dict[str, str]:
    """The outcome of the first two changes of every setting that can be changed by itself."""
    outcomes: dict[str, str] = {}
    spec = spec_of(name)
    for path, kind in settings(spec):
        if path.startswith(ELSEWHERE) or (paths is not None and path not in paths):
            continue
        for index, other in zip(range(2), changed(spec, path, kind), strict=False):
            try:
                outcomes[f"{path} {index}"] = fork(name, other, root)
            except Exception as fault:
                raise AssertionError(
                    f"{path}: {fault!r} with {lookup(other.model_dump(), tuple(path.split('.')))}"
                ) from fault
    return outcomes


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize(("name", "path"), SAMPLE)
def test_a_changed_setting_is_refused_or_the_child_trains_on(name: str, path: str, root: Path) -> None:
    outcomes = walk(name, root, {path})
    assert outcomes, f"{path} was not changed"
    free = ("agent.net.optimizer.lr", "agent.memory.batch_size")
    for outcome in outcomes.values():
        assert (outcome == "done") == (path in free or ("percentile" not in outcome and path.endswith("advantages")))
        assert outcome == "done" or f"{path} cannot change in a forked run, from " in outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", PARENTS)
def test_every_setting_is_refused_by_its_mark_or_the_child_trains_on(name: str, root: Path) -> None:
    outcomes = walk(name, root)
    done = [path for path, outcome in outcomes.items() if outcome == "done"]
    print(name, len(outcomes), "changes,", len(done), "trained on")
    assert len(done) > 10
    assert len(outcomes) - len(done) > 5
