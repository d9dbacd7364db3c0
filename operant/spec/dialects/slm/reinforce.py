"""Reinforce."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.on_policy import EPISODES, NATIVE, NO_TARGET, drawn_actions, policy_terms, unit_of

NO_CRITIC = "left out: REINFORCE has no critic"
NET_DROPPED: dict[str, str] = {
    **NO_TARGET,
    **dict.fromkeys(("shared", "use_same_optim", "actor_optim_spec", "critic_optim_spec"), NO_CRITIC),
}


def reinforce(agent: Section, budget: Budget) -> None:
    """Take over the algorithm, its net and its optimiser."""
    settings, net = agent.below("algorithm"), agent.below("net")
    settings.ledger.set(f"{NATIVE}.name", "reinforce", settings.at("name"))
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    drawn_actions(settings)
    policy_terms(settings)
    _episodes(settings, agent.below("memory"), budget)
    settings.drop(
        {
            "center_return": "left out: returns are standardised, as SLM-Lab does in any case",
            "explore_var_spec": "left out: SLM-Lab's Reinforce does not read it",
        }
    )
    settings.close()
    nets.layers(net, heads=("actor",))
    net.copy("log_std_init", "agent.net.log_std_init")
    net.get("loss_spec")  # a policy gradient has no loss to choose
    optim.one_optimiser(net, budget)
    net.drop({**nets.DROPPED, **NET_DROPPED})
    net.close()


def _episodes(settings: Section, memory: Section, budget: Budget) -> None:
    """Here an update is made of whole episodes, as many in each environment."""
    settings.need("training_frequency")
    count = settings.whole("training_frequency", 1)
    if unit_of(memory) == EPISODES:
        episodes = count * budget.num_envs
    else:
        episodes = budget.num_envs
        why = f"{count} steps of each environment become one whole episode of each: here no episode is cut"
        settings.ledger.remark(settings.at("training_frequency"), why)
    settings.ledger.set(f"{NATIVE}.training_frequency", episodes, settings.at("training_frequency"))
