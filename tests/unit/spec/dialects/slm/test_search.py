from __future__ import annotations

from typing import Any

from operant.spec.load import load
from tests.unit.spec.dialects.slm.conftest import ABSENT, FILES, Changed, refusal

A = "agent.algorithm"


def test_dimensions_move_to_the_setting_with_the_same_value() -> None:
    assert load(str(FILES / "dqn_lunar.json"), "ddqn_per_lunar").spec.search == {
        "agent.algorithm.epsilon.end__uniform": [0.01, 0.05],
        "agent.net.optimizer.lr__loguniform": [0.0003, 0.003],
        "agent.algorithm.target_update__qrandint": [50, 150, 25],
    }


def test_nested_blocks_in_lists_and_grids() -> None:
    loaded = load(str(FILES / "older.json"))
    assert loaded.spec.search == {
        "agent.algorithm.gamma__uniform": [0.9, 0.999],
        "agent.net.hidden__choice": [[32], [64]],
        "agent.net.optimizer.lr__choice": [0.1, 0.01],
    }
    assert any("not tried in turn" in remark.text for remark in loaded.remarks)


def searched(changed: Changed, changes: dict[str, Any], **search: Any) -> tuple[dict[str, Any], list[str]]:
    loaded = changed({**changes, "search": {key.replace("___", "."): value for key, value in search.items()}})
    return dict(loaded.spec.search or {}), [str(remark) for remark in loaded.remarks]


def test_a_setting_that_the_file_lacks_may_be_searched(ppo: Changed) -> None:
    found, _ = searched(ppo, {}, agent___algorithm___symlog__choice=[True, False])
    assert found == {"agent.algorithm.symlog__choice": [True, False]}


def test_a_value_with_another_unit_is_converted(dqn: Changed) -> None:
    found, remarks = searched(dqn, {}, agent___algorithm___training_batch_iter__choice=[1, 2])
    assert found == {"agent.algorithm.training_iter__choice": [4, 8]}
    assert any("becomes agent.algorithm.training_iter" in each for each in remarks)


def test_a_dimension_may_be_of_several_settings(ppo: Changed) -> None:
    found, _ = searched(ppo, {"meta.distributed": "shared"}, env___num_envs__choice=[2, 4])
    assert found == {"env.num_envs__choice": [8, 16]}
    clipped = {f"{A}.clip_vloss": True, f"{A}.clip_eps_spec.end_val": ABSENT}
    half, _ = searched(ppo, clipped, agent___algorithm___clip_eps_spec___start_val__uniform=[0.1, 0.3])
    choices = half["agent_algorithm_clip_eps_spec_start_val__choice"]
    assert choices[0] == {"agent.algorithm.clip_eps": 0.1, "agent.algorithm.clip_vloss": 0.1}
    assert len(choices) == 9


def test_what_changes_nothing_or_has_no_counterpart_is_left_out(ppo: Changed) -> None:
    found, remarks = searched(
        ppo,
        {},
        agent___algorithm___gamma__uniform=[0.9, 0.99],
        agent___algorithm___policy_loss_coef__choice=[1, 2],
        agent___net___batch_norm__choice=[True],
        agent___algorithm___lam=0.9,
    )
    assert found == {"agent.algorithm.gamma__uniform": [0.9, 0.99]}
    said = " ".join(remarks)
    assert "policy_loss_coef changes nothing here" in said
    assert "left out of the search: agent.net.batch_norm = True has no counterpart" in said
    assert "names no distribution" in said


def test_values_that_cannot_be_are_refused_by_the_native_checks(ppo: Changed) -> None:
    said = refusal(ppo, {"search": {"agent.algorithm.gamma__uniform": [0.9, 1.5]}})
    assert "agent.algorithm.gamma = 1.5 is out of range" in said
    assert '"agent.algorithm.gamma__uniform"' in said
