from __future__ import annotations

from typing import Any

import pytest

from tests.unit.spec.dialects.slm.conftest import Changed, refusal


@pytest.mark.parametrize(
    ("init", "native"), [(None, "torch"), ("orthogonal_", "orthogonal"), ("kaiming_normal_", "kaiming_normal")]
)
def test_starts_of_weights(ppo: Changed, init: str | None, native: str) -> None:
    assert ppo({"agent.net.init_fn": init}).spec.agent.net.init == native


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("init_fn", "sparse_"),
        ("hid_layers_activation", "softsign"),
        ("batch_norm", True),
        ("critic_hid_layers", [64]),
    ],
)
def test_other_layers_are_refused(ppo: Changed, key: str, value: Any) -> None:
    assert f"agent.net.{key}" in refusal(ppo, {f"agent.net.{key}": value})


def test_layer_norms_come_along(ppo: Changed) -> None:
    assert ppo({"agent.net.layer_norm": True}).spec.agent.net.layer_norm


@pytest.mark.parametrize("kind", ["HydraMLPNet", "QNet"])
def test_other_nets_are_refused_even_when_losses_are_accepted(ppo: Changed, kind: str) -> None:
    said = refusal(ppo, {"agent.net.type": kind, "agent.net.unheard": 1}, lossy=True)
    assert f'agent.net.type = "{kind}" has no counterpart' in said
    assert "unheard" not in said


def test_dead_keys_are_remarked_on(ppo: Changed) -> None:
    loaded = ppo({"agent.net.actor_init_std": 0.01, "agent.net.cell_type": "GRU"})
    assert {"agent.net.actor_init_std", "agent.net.cell_type"} <= {remark.key for remark in loaded.remarks}
