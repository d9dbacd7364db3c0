"""Lanes may differ in traced settings and in nothing else: every learner, every traced setting."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from operant.engines.jax.lanes import program_key
from operant.engines.jax.learners import build_learner, learner_class
from operant.engines.jax.program import Program, lane_of, stacked
from operant.engines.jax.tracing import static
from operant.run.seeding import Seeds
from operant.spec.reading.document import put
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import with_learner

REPLAYING = {"training_start": 32, "training_frequency": 8, "training_iter": 2}
MEMORY = {"name": "replay", "max_size": 256, "batch_size": 16}
AGENTS: dict[str, dict[str, Any]] = {
    "ppo": {
        "algorithm": {
            "name": "ppo",
            "time_horizon": 8,
            "minibatch_size": 16,
            "training_epoch": 2,
            "clip_vloss": 0.2,
            "target_kl": 0.1,
        }
    },
    "dqn": {"algorithm": {"name": "dqn", **REPLAYING}, "memory": MEMORY},
    "sac": {"algorithm": {"name": "sac", **REPLAYING}, "memory": MEMORY},
    "td3": {"algorithm": {"name": "td3", **REPLAYING}, "memory": MEMORY},
    "crossq": {"algorithm": {"name": "crossq", **REPLAYING, "policy_delay": 1}, "memory": MEMORY},
}
# Another value of each, across whatever border there may be between two kinds of it.
OTHERS: dict[str, Any] = {
    "lr": 1e-2,
    "critic_lr": 3e-2,
    "lr_end_fraction": 0.0,
    "clip_grad_norm": 0.01,
    "gamma": 1.0,
    "lam": 1.0,
    "clip_eps": {"start": 0.3, "end": 0.1, "frames": 64},
    "entropy_coef": 0.0,
    "val_loss_coef": 0.0,
    "clip_vloss": 5.0,
    "target_kl": 1e-9,
    "epsilon": 0.0,
    "polyak": 0.25,
    "exploration_noise": {"start": 0.5, "end": 0.1, "frames": 64},
    "target_noise": 0.9,
    "target_noise_clip": 0.01,
}
PAIRS = [(name, path) for name in with_learner("jax") for path in learner_class(name).TRACED]


def spec_of(name: str, path: str | None = None, value: Any = None) -> Spec:
    critic = {} if name == "dqn" else {"critic_lr": 1e-3}
    agent = {**AGENTS[name], "net": {"hidden": [8], "optimizer": {"clip_grad_norm": 0.5, **critic}}}
    env = {
        "name": "Pendulum-v1" if name == "td3" else "CartPole-v1",
        "num_envs": 2,
        "max_frame": 640,
        "normalize_obs": True,
    }
    document: Any = {"engine": "jax", "env": env, "agent": agent}
    return Spec.model_validate(document if path is None else put(document, tuple(path.split(".")), value))


@cache
def program_text(spec_json: str, lanes: int = 2) -> str:
    """What the compiler is given for the learner of this spec, whatever its lanes' numbers will be."""
    spec = Spec.model_validate_json(spec_json)
    program = Program(build_learner(spec), lanes)
    weights = [program.learner.init_params(np.random.default_rng(0))] * lanes
    keys = jax.vmap(jax.random.key)(np.zeros(lanes, np.uint32))
    states = jax.eval_shape(program.init, keys, jax.tree.map(lambda *leaves: np.stack(leaves), *weights))
    return program.chunk.lower(states, stacked([program.learner.hyper(spec)] * lanes), np.int32(1)).as_text()


def test_every_learner_says_what_it_traces():
    assert set(AGENTS) == set(with_learner("jax"))
    assert {path.rpartition(".")[2] for _, path in PAIRS} == set(OTHERS)


def assert_same_program(spec: Spec, other: Spec) -> None:
    """To the letter, so a lane computes what it would by itself."""
    assert program_key(spec.model_dump(mode="json")) == program_key(other.model_dump(mode="json"))
    assert program_text(spec.model_dump_json()) == program_text(other.model_dump_json())


@pytest.mark.parametrize("name", AGENTS)
def test_traced_settings_are_numbers_of_the_program_and_not_part_of_it(name: str):
    """With another value of each of them at once; the slow test below says which one it was."""
    document: Any = spec_of(name).model_dump(mode="json")
    for path in learner_class(name).TRACED:
        document = put(document, tuple(path.split(".")), OTHERS[path.rpartition(".")[2]])
    assert_same_program(spec_of(name), Spec.model_validate(document))


@pytest.mark.parametrize(("name", "path"), PAIRS)
def test_a_learner_reads_a_traced_setting(name: str, path: str):
    spec, other = spec_of(name), spec_of(name, path, OTHERS[path.rpartition(".")[2]])
    learner = build_learner(spec)
    before, after = (jax.tree.leaves(learner.hyper(each)) for each in (spec, other))
    assert any(float(one) != float(two) for one, two in zip(before, after, strict=True)), "hyper does not read it"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "path"), PAIRS)
def test_a_traced_setting_is_a_number_of_the_program_and_not_part_of_it(name: str, path: str):
    assert_same_program(spec_of(name), spec_of(name, path, OTHERS[path.rpartition(".")[2]]))


@pytest.mark.parametrize("path", ["agent.net.optimizer.clip_grad_norm", "agent.algorithm.target_kl"])
def test_whether_a_setting_is_given_is_static(path: str):
    given, none = (spec.model_dump(mode="json") for spec in (spec_of("ppo"), spec_of("ppo", path, None)))
    assert program_key(given) != program_key(none)


def test_an_own_schedule_decides_the_program(monkeypatch: pytest.MonkeyPatch):
    """Nothing of it is traced but the frame, so sessions that differ in it share no program."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[4] / "docs" / "examples"))
    lines, *steps = (
        spec_of("ppo", "agent.algorithm.clip_eps", value)
        for value in (0.2, *({"name": "my_schedules:Steps", "start": 0.2, "every": every} for every in (10, 20)))
    )
    assert len({program_key(spec.model_dump(mode="json")) for spec in (lines, *steps)}) == 3
    clip = build_learner(steps[0]).hyper(steps[0]).clip
    assert [float(clip.at(jnp.float32(frame))) for frame in (0, 10, 25)] == pytest.approx([0.2, 0.1, 0.05])


@pytest.mark.parametrize(("name", "path"), PAIRS)
def test_a_learner_cannot_read_a_traced_setting_from_its_own_spec(name: str, path: str):
    value: Any = build_learner(spec_of(name)).spec
    for key in path.split("."):
        value = getattr(value, key)
    for use in (bool, float, lambda x: x < 1, lambda x: 2 * x, lambda x: x == 1, lambda x: x.start, np.asarray):
        with pytest.raises(TypeError, match=f"{path} is traced"):
            use(value)


def test_what_is_not_given_stays_not_given():
    spec = static(spec_of("ppo", "agent.algorithm.target_kl", None), learner_class("ppo").TRACED)
    assert spec.agent.algorithm.target_kl is None  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.slow
def test_lanes_that_copy_and_that_blend_their_target_network():
    """Which lane comes first, and so whose spec the learner was built from, decides nothing."""
    copying, blending = (spec_of("dqn", "agent.algorithm.polyak", polyak) for polyak in (1.0, 0.005))
    of_copying, of_blending = (Program(build_learner(spec), 2) for spec in (copying, blending))

    def targets(program: Program, *lanes: Spec) -> list[Any]:
        hyper = stacked([program.learner.hyper(each) for each in lanes])
        states, _ = program.chunk(program.start([Seeds(1), Seeds(1)]), hyper, np.int32(70))
        return [jax.device_get(lane_of(states, lane).learner.target) for lane in range(len(lanes))]

    together = targets(of_copying, copying, blending)
    apart = [targets(of_copying, copying, copying)[0], targets(of_copying, blending, blending)[1]]
    jax.tree.map(np.testing.assert_array_equal, together, apart)
    jax.tree.map(np.testing.assert_array_equal, together, targets(of_blending, blending, copying)[::-1])
    moved = jax.tree.map(lambda one, two: not np.array_equal(one, two), *together)
    assert any(jax.tree.leaves(moved))


@pytest.mark.slow
def test_a_lane_that_is_not_a_number_leaves_the_other_as_it_is():
    spec = spec_of("ppo")
    program = Program(build_learner(spec), 2)
    hyper = program.learner.hyper(spec)
    lost = jax.tree.map(lambda number: number * jnp.nan, hyper)

    def weights(second: Any) -> list[Any]:
        states, _ = program.chunk(program.start([Seeds(1), Seeds(2)]), stacked([hyper, second]), np.int32(3))
        return [jax.tree.leaves(jax.device_get(lane_of(states, lane).policy.params)) for lane in range(2)]

    (fine, other), (beside, broken) = weights(hyper), weights(lost)
    assert all(np.array_equal(*pair) for pair in zip(fine, beside, strict=True))
    assert np.isfinite(np.concatenate([leaf.ravel() for leaf in other])).all()
    assert np.isnan(np.concatenate([leaf.ravel() for leaf in broken])).any()
