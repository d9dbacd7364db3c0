from __future__ import annotations

from operant.spec.load import load
from tests.unit.spec.dialects.slm.conftest import FILES, Changed, refusal


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


def test_a_dimension_without_counterpart_is_refused_where_it_stands(ppo: Changed) -> None:
    said = refusal(ppo, {"search": {"agent.algorithm.symlog__choice": [True, False]}})
    assert "search.agent.algorithm.symlog__choice cannot be searched" in said
    assert "names no distribution" in refusal(ppo, {"search": {"agent.algorithm.gamma": 0.9}})


def test_values_that_cannot_be_are_refused_by_the_native_checks(ppo: Changed) -> None:
    said = refusal(ppo, {"search": {"agent.algorithm.gamma__uniform": [0.9, 1.5]}})
    assert "agent.algorithm.gamma = 1.5 is out of range" in said
    assert '"agent.algorithm.gamma__uniform"' in said
