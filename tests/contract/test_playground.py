"""MuJoCo Playground in the jax engine: its state, a large pytree of others, survives SIGKILL to the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.spec.schema import Spec
from tests.contract.conftest import META, SMALL_NET, differing
from tests.contract.test_jax import create, finish, kill_at_row

pytest.importorskip("mujoco_playground")


@pytest.mark.slow
def test_a_session_is_killed_and_resumed_exactly(tmp_path: Path):
    env = {"name": "playground/CartpoleBalance", "num_envs": 4, "max_frame": 12_000, "max_t": 100, "reward_scale": 10.0}
    algorithm = {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}
    algorithm |= {"critic_hidden": [16, 16, 16], "normalize_v_targets": True}
    agent = {"algorithm": algorithm, "net": SMALL_NET}
    spec = Spec.model_validate({"name": "cart", "env": {**env, "normalize_obs": True}, "agent": agent, "meta": META})
    assert spec.engine_name == "jax"
    whole, broken = create(tmp_path / "whole", spec, 1), create(tmp_path / "broken", spec, 1)
    finish(*whole)
    kill_at_row(5, *broken)
    finish(*broken)
    assert differing(broken[0], whole[0]) is None
