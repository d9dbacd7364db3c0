"""Programs around environments on the host: groups of them, truncation, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from operant.engines.jax.compatibility import check_compatibility
from operant.engines.jax.host import program as host_program
from operant.engines.jax.host.groups import VectorEnvGroups
from operant.engines.jax.host.program import HostProgram
from operant.engines.jax.host.rollout import Recorder
from operant.engines.jax.learners import build_learner
from operant.engines.jax.program import stacked
from operant.engines.jax.programs import build_program
from operant.envs.functional.find import steps_on_host
from operant.errors import UsageError
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.memories import PrioritisedReplaySpec

PPO = {"name": "ppo", "time_horizon": 16, "minibatch_size": 32, "training_epoch": 1}
DQN = {"name": "dqn", "training_start": 300, "training_frequency": 2}
SAC = {"name": "sac", "training_start": 300, "training_frequency": 2, "training_iter": 1}


def spec_of(algorithm: dict[str, Any], env: dict[str, Any], net: dict[str, Any] | None = None, **meta: Any) -> Spec:
    return Spec.model_validate(
        {
            "engine": "jax",
            "env": {"num_envs": 4, "max_frame": 10_000, **env},
            "agent": {"algorithm": algorithm, "net": {"hidden": [8], **(net or {})}},
            "meta": meta,
        }
    )


@pytest.mark.parametrize(
    ("env", "on_host"),
    [
        ({"name": "CartPole-v1"}, False),
        ({"name": "CartPole-v1", "vectorization": "serial"}, True),
        ({"name": "LunarLander-v3"}, True),
        ({"name": "gymnax:Breakout-MinAtar"}, False),
        ({"name": "HackMatrix-v0"}, False),
    ],
)
def test_what_steps_on_the_host(env: dict[str, Any], on_host: bool):
    assert steps_on_host(spec_of(PPO, env).env) == on_host


def advanced(program: Any, spec: Spec, updates: int) -> Any:
    states = program.placed(program.start([Seeds(3)]))
    states, metrics = program.chunk(states, stacked([program.learner.hyper(spec)]), updates)
    (row,) = program.fetch(metrics, updates)[0]
    return states, row.metrics, row.episodes


def test_two_groups_play_the_episodes_of_one(monkeypatch: pytest.MonkeyPatch):
    """Numbered through both groups, each environment has its own seeds, whichever group it is in."""
    spec = spec_of(PPO, {"name": "CartPole-v1", "vectorization": "serial"})
    seeds: list[set[int]] = []
    for count in (1, 2):
        monkeypatch.setattr(host_program, "group_count", lambda num, count=count: count)
        program = HostProgram(build_learner(spec))
        _, metrics, ended = advanced(program, spec, 8)
        assert metrics.episodes == len(ended)
        assert metrics.gradient_steps == 8 * 2
        seeds.append({episode.seed for episode in ended if episode.seed is not None})
        state = program.env_state()
        assert state["obs"].shape == (4, 4)
        twin = VectorEnvGroups(spec, Seeds(3), 2)
        twin.restore(state)
        np.testing.assert_array_equal(twin.state()["obs"], state["obs"])
    first = {int(seed) for seed in seeds[0]} & {int(seed) for seed in seeds[1]}
    assert len(first) >= 4, "the first episodes have the same seeds"


def test_final_observations_of_truncated_episodes_are_kept():
    """More of them than the time limit says are kept all the same: an environment may truncate when it likes."""
    spec = spec_of(PPO, {"name": "Pendulum-v1", "vectorization": "serial", "num_envs": 2, "max_t": 3})
    learner = build_learner(spec)
    groups = VectorEnvGroups(spec, Seeds(3), 1)
    recorder = Recorder(groups.groups[0], learner)
    for _ in range(16):
        recorder.send(np.zeros((2, 1), np.float32))
        recorder.receive()
    played = recorder.close()
    assert played.truncated.sum(0).tolist() == [5, 5]
    assert played.final.shape == (8, 2, 3)
    last = np.flatnonzero(played.truncated[:, 0])
    # What follows a truncated step in the rollout is the next episode's first observation, not its successor.
    assert not np.allclose(played.final[0, 0], played.observation[last[0] + 1, 0])
    assert not played.final[5:].any()


def test_frames_before_training_start_are_stored_and_not_learned_from():
    spec = spec_of(SAC, {"name": "Pendulum-v1", "vectorization": "serial", "num_envs": 2})
    program = build_program(spec, 1)
    before = program.start([Seeds(3)]).policy.params
    states, metrics, _ = advanced(program, spec, 149)
    assert metrics.learned == 0
    assert int(states.rollout.buffer.added[0, 0]) == 149
    jax.tree.map(np.testing.assert_array_equal, states.policy.params, before)
    states, metrics = program.chunk(states, stacked([program.learner.hyper(spec)]), 3)
    assert program.fetch(metrics, 3)[0][0].metrics.gradient_steps == 3


@pytest.mark.parametrize(
    ("algorithm", "env", "net", "words"),
    [
        ({"name": "a2c"}, {"name": "LunarLander-v3"}, {}, "agent.algorithm.name"),
        ({**SAC, "name": "crossq"}, {"name": "ALE/Pong-v5", "num_envs": 2}, {"type": "nature_cnn"}, "renormalizes"),
        (SAC, {"name": "CarRacing-v3", "num_envs": 2}, {"type": "nature_cnn"}, "real ones"),
        ({**DQN, "n_step": 3}, {"name": "ALE/Pong-v5", "num_envs": 2}, {"type": "nature_cnn"}, "one step ahead"),
        (PPO, {"name": "CartPole-v1"}, {"type": "nature_cnn"}, "agent.net.type"),
        (PPO, {"name": "CartPole-v1", "vectorization": "serial"}, {"type": "impala"}, "gives vectors"),
        (PPO, {"name": "CartPole-v1"}, {"type": "gru"}, "is recurrent"),
        ({**PPO, "auto_scale": True}, {"name": "LunarLander-v3"}, {"type": "gru"}, "cut the sequences"),
        ({**SAC, "name": "td3"}, {"name": "LunarLander-v3", "num_envs": 2}, {}, "real actions"),
        (PPO, {"name": "NoSuch-v0"}, {}, "no environment is called"),
    ],
)
def test_what_cannot_be_trained_is_refused(algorithm: Any, env: Any, net: Any, words: str):
    for package, needed in (("Box2D", "Lunar"), ("Box2D", "CarRacing"), ("ale_py", "ALE")):
        if needed in env["name"]:
            pytest.importorskip(package)
    with pytest.raises(UsageError, match=words):
        check_compatibility(spec_of(algorithm, env, net))


def test_several_devices_are_refused():
    with pytest.raises(UsageError, match=r"meta\.devices"):
        check_compatibility(spec_of(PPO, {"name": "CartPole-v1", "vectorization": "serial"}, devices=2))


def test_replay_by_shares_of_devices_is_not_prioritised():
    spec = spec_of(DQN, {"name": "CartPole-v1", "num_envs": 2}, devices=2)
    memory = PrioritisedReplaySpec()
    agent = spec.agent.model_copy(update={"memory": memory})
    with pytest.raises(UsageError, match=r"agent\.memory\.name"):
        check_compatibility(spec.model_copy(update={"agent": agent}))


def test_hidden_states_are_shared_out_to_groups_and_begin_at_zero(monkeypatch: pytest.MonkeyPatch):
    """Both groups of environments act on hidden states of their own, and what is learned comes in one order."""
    net = {"type": "gru", "hidden": [], "recurrent": 3}
    spec = spec_of({**PPO, "minibatch_size": 64}, {"name": "operant/CartPoleNoVelocity-v1"}, net)
    for count in (1, 2):
        monkeypatch.setattr(host_program, "group_count", lambda num, count=count: count)
        program = HostProgram(build_learner(spec))
        seen: list[Any] = []
        act = program._act
        program._act = lambda *given, act=act, seen=seen: seen.append(given[1]) or act(*given)
        states, *_ = advanced(program, spec, 1)
        assert [len(each.observation) for each in seen] == [4 // count] * 16 * count
        assert not any(np.any(each.hidden) for each in seen[:count])
        assert all(np.all(np.any(each.hidden, 1)) for each in seen[count:])
        assert states.rollout.hidden.shape == (1, 4, 6)
        assert np.all(np.any(states.rollout.hidden, -1))
