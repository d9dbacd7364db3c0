"""SARSA."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.dqn import NET_DROPPED, td_loss
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.exploring import exploration
from operant.spec.dialects.slm.on_policy import NATIVE, NO_TARGET, steps_per_update


def sarsa(agent: Section, budget: Budget) -> None:
    """Take over the algorithm, its net and its optimiser."""
    settings, net = agent.below("algorithm"), agent.below("net")
    settings.ledger.set(f"{NATIVE}.name", "sarsa", settings.at("name"))
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    exploration(settings, "sarsa")
    steps_per_update(settings, agent.below("memory"))
    settings.close()
    td_loss(net)
    nets.layers(net, heads=("critic",))
    optim.one_optimiser(net, budget)
    net.drop({**nets.DROPPED, **NET_DROPPED, **NO_TARGET})
    net.close()
