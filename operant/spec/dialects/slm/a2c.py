"""ActorCritic: A2C, and A3C but for its processes."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.offered import copy_if_offered
from operant.spec.dialects.slm.on_policy import (
    NATIVE,
    actor_critic_net,
    drawn_actions,
    policy_terms,
    steps_per_update,
)

NOT_READ = "left out: SLM-Lab's ActorCritic does not read it"
DROPPED: dict[str, str] = dict.fromkeys(
    ("explore_var_spec", "center_return", "training_epoch", "training_batch_iter"), NOT_READ
)
PLAIN = "plain returns, to the end of the batch in SLM-Lab; lam 1 adds the value of what follows"


def a2c(agent: Section, budget: Budget) -> None:
    """Take over the algorithm, its net and its optimisers."""
    settings = agent.below("algorithm")
    settings.ledger.set(f"{NATIVE}.name", "a2c", settings.at("name"))
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    settings.copy("val_loss_coef", f"{NATIVE}.val_loss_coef", default=1.0)
    settings.ledger.set(f"{NATIVE}.normalize_advantages", True, settings.at("name"))
    drawn_actions(settings)
    policy_terms(settings)
    _returns(settings)
    steps_per_update(settings, agent.below("memory"))
    copy_if_offered(settings, "a2c", {"normalize_v_targets": "normalize_v_targets", "symlog": "symlog"})
    settings.drop(DROPPED)
    settings.close()
    actor_critic_net(agent.below("net"), budget)


def _returns(settings: Section) -> None:
    """By `lam` if it is given, else by `num_step_returns`, else plain."""
    if settings.get("lam") is not None:
        settings.copy("lam", f"{NATIVE}.lam")
        settings.drop({"num_step_returns": "left out: SLM-Lab reads it only without lam"})
    elif settings.get("num_step_returns") is not None:
        settings.copy("num_step_returns", f"{NATIVE}.num_step_returns")
    else:
        settings.ledger.set(f"{NATIVE}.lam", 1.0, settings.at("lam"))
        settings.ledger.remark(settings.at("lam"), PLAIN)
