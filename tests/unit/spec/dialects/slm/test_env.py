from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from operant.errors import SpecError
from operant.spec.load import load
from tests.unit.spec.dialects.slm.conftest import ABSENT, Changed, data_of, refusal, with_changes


def test_there_is_one_environment_unless_more_are_asked_for(ppo: Changed) -> None:
    assert ppo({"env.num_envs": ABSENT}).spec.env.num_envs == 1


def test_keys_of_the_environment_reach_it(ppo: Changed) -> None:
    assert ppo({"env.continuous": True}).spec.env.kwargs == {"continuous": True}


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({}, None),
        ({"env.normalize_reward": True}, 10.0),
        ({"env.clip_reward": 5}, 5),
        ({"env.clip_reward": [-1, 1]}, 1),
    ],
)
def test_rewards_are_limited_as_there(ppo: Changed, changes: dict[str, Any], limit: float | None) -> None:
    assert ppo(changes).spec.env.clip_reward == limit


def test_what_no_environment_here_does_is_refused(ppo: Changed) -> None:
    assert "alike on both sides" in refusal(ppo, {"env.clip_reward": [0, 1]})
    assert "without normalize_obs" in refusal(ppo, {"env.clip_obs": 5})


def test_a_time_limit_is_kept_and_remarked_on(ppo: Changed) -> None:
    loaded = ppo({"env.max_t": 100})
    assert loaded.spec.env.max_t == 100
    assert "env.max_t" in [remark.key for remark in loaded.remarks]


def test_playground_is_played_as_there_by_the_jax_engine(ppo: Changed) -> None:
    loaded = ppo({"env.name": "playground/CheetahRun", "env.reward_scale": 10.0, "env.device": "auto", "env.x": 1})
    env = loaded.spec.env
    assert (loaded.spec.engine_name, env.max_t, env.reward_scale, env.kwargs) == ("jax", 1000, 10.0, {})
    assert {"env.name", "env.device", "env.x"} <= {remark.key for remark in loaded.remarks}


def test_an_action_that_slm_lab_repeats_is_repeated(ppo: Changed) -> None:
    env = ppo({"env.name": "playground/PendulumSwingup"}).spec.env
    assert (env.max_t, env.kwargs) == (250, {"action_repeat": 4})


def test_only_playground_reads_a_scale_of_rewards(ppo: Changed) -> None:
    loaded = ppo({"env.reward_scale": 10.0})
    assert loaded.spec.env.reward_scale == 1.0
    assert "env.reward_scale" in {remark.key for remark in loaded.remarks}


def test_the_older_form_has_keys_of_its_own() -> None:
    data = with_changes(data_of("older.json", "vanilla_dqn_cartpole"), {})
    data["env"][0]["frame_op"] = "concat"
    Path("slm.json").write_text(json.dumps({"old": data}))
    with pytest.raises(SpecError, match=r"env\.frame_op"):
        load("slm.json")
