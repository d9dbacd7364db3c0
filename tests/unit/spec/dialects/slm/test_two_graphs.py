"""Policies and values with graphs of their own, and a distribution that SLM-Lab does not have."""

from __future__ import annotations

from typing import Any

from tests.unit.spec.dialects.slm.conftest import Changed, refusal


def graph(*widths: int, activation: str = "SiLU") -> dict[str, Any]:
    layers = [layer for width in widths for layer in ({"LazyLinear": {"out_features": width}}, {activation: None})]
    return {"modules": {"body": {"Sequential": layers}}, "graph": {"input": "x", "output": "body"}}


def nets(actor: dict[str, Any], critic: dict[str, Any], **settings: Any) -> dict[str, Any]:
    net = {"type": "TorchArcNet", "shared": False, "use_same_optim": False, "init_fn": "orthogonal_"}
    return {"agent.net": {**net, "actor_arc": actor, "critic_arc": critic, **settings}}


def test_widths_of_both(ppo: Changed) -> None:
    agent = ppo(nets(graph(64, 64), graph(256, 256, 256))).spec.agent
    assert (agent.net.hidden, agent.net.activation) == ((64, 64), "silu")
    assert getattr(agent.algorithm, "critic_hidden") == (256, 256, 256)  # noqa: B009


def test_equal_widths_are_said_once(ppo: Changed) -> None:
    agent = ppo(nets(graph(32), graph(32))).spec.agent
    assert (agent.net.hidden, getattr(agent.algorithm, "critic_hidden")) == ((32,), None)  # noqa: B009


def test_the_critic_of_one_optimiser_has_the_net_of_the_actor(ppo: Changed) -> None:
    loaded = ppo(nets(graph(8), graph(16), use_same_optim=True))
    assert getattr(loaded.spec.agent.algorithm, "critic_hidden") is None  # noqa: B009
    assert "agent.net.critic_arc" in {remark.key for remark in loaded.remarks}


def test_other_activations_are_refused_at_their_place(ppo: Changed) -> None:
    assert "other activations" in refusal(ppo, nets(graph(8), graph(8, activation="Tanh")))


def test_a_squashed_normal_is_remarked_on_and_others_are_refused(ppo: Changed) -> None:
    loaded = ppo({"agent.algorithm.action_pdtype": "NormalTanh"})
    assert "agent.algorithm.action_pdtype" in {remark.key for remark in loaded.remarks}
    assert "Categorical or Normal" in refusal(ppo, {"agent.algorithm.action_pdtype": "Beta"})
