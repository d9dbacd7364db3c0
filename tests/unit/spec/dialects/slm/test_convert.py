from __future__ import annotations

import contextlib
import json
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from operant.errors import SpecError, UsageError
from operant.spec.load import load
from operant.spec.reading.document import leaves, put
from tests.unit.spec.dialects.slm.conftest import FILES, Changed, data_of, refusal

STRANGE: list[Any] = [None, [], {}, "text", -1, 1e300, True, [1, "a"], {"a": 1}]
SPECS = [
    ("ppo_cartpole.json", "ppo_cartpole"),
    ("dqn_lunar.json", "dqn_lunar"),
    ("dqn_cartpole.yaml", "dqn_rate_decay_cartpole"),
    ("sac_pendulum.yaml", "sac_pendulum"),
]


def test_every_problem_is_in_one_report(ppo: Changed) -> None:
    said = refusal(
        ppo, {"agent.algorithm.policy_loss_coef": 2, "meta.distributed": "by hand", "agent.net.batch_norm": True}
    )
    assert [key in said for key in ("policy_loss_coef", "distributed", "batch_norm")] == [False, True, True]


def test_other_algorithms_are_named_plainly() -> None:
    data = data_of("sac_pendulum.yaml", "sac_pendulum")
    Path("slm.json").write_text(json.dumps({"hydra": put(data, ("agent", "algorithm", "name"), "HydraDQN")}, indent=1))
    with pytest.raises(SpecError) as caught:
        load("slm.json", lossy=True)
    assert 'agent.algorithm.name = "HydraDQN" has no counterpart in this version' in str(caught.value)
    assert str(caught.value.place).startswith("slm.json:6:")


def test_variables_are_filled_before_and_settings_changed_after() -> None:
    path = str(FILES / "ppo_continuous.yaml")
    overrides = ["env=Pendulum-v1", "max_frame=4e6", "agent.algorithm.gamma=0.9", "meta.seed=7"]
    spec = load(f"{path}:ppo_continuous", None, overrides).spec
    assert (spec.env.name, spec.env.max_frame, spec.meta.seed) == ("Pendulum-v1", 4_000_000, 7)
    assert spec.agent.net.optimizer.lr_end_fraction == 0
    with pytest.raises(SpecError, match=r"env\.name waits for \$\{env\}"):
        load(path, "ppo_continuous", ["max_frame=100"])
    with pytest.raises(SpecError, match="gama"):
        load(path, "ppo_continuous", [*overrides, "agent.algorithm.gama=0.9"])


@pytest.mark.parametrize(
    ("key", "value"),
    [("agent", [{}, {}]), ("env", [{}, {}]), ("body", {"product": "inner", "num": 2}), ("agent", 3), ("env", None)],
)
def test_several_agents_and_odd_sections_are_refused(ppo: Changed, key: str, value: Any) -> None:
    assert key in refusal(ppo, {key: value}, lossy=True)


@pytest.mark.parametrize(("file", "name"), SPECS)
def test_no_value_however_strange_is_a_defect(file: str, name: str) -> None:
    check_strange_values(file, name, every=7)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "name"), SPECS)
def test_no_value_at_all_is_a_defect(file: str, name: str) -> None:
    check_strange_values(file, name, every=1)


def check_strange_values(file: str, name: str, every: int) -> None:
    """One in so many of all strange values at all places of a spec is converted or refused."""
    data = data_of(file, name)
    places = {path[:depth] for path, _ in leaves(data) for depth in range(1, len(path) + 1)}
    for place, value in islice(product(sorted(places, key=str), STRANGE), 0, None, every):
        Path("slm.json").write_text(json.dumps({name: put(data, place, value)}))
        with contextlib.suppress(UsageError):
            load("slm.json", name, lossy=True)
