"""SIL and PPOSIL: ActorCritic and PPO, and a replay of whole episodes."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.a2c import a2c
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.ppo import ppo
from operant.spec.dialects.slm.replay import NATIVE, gradient_steps, replay_settings

WHOLE = "past steps enter the replay once their episode is over, when their return is known"


def sil(agent: Section, budget: Budget) -> None:
    """Take over A2C and the imitation."""
    _imitation(agent)
    a2c(agent, budget)
    _name(agent, "sil")


def ppo_sil(agent: Section, budget: Budget) -> None:
    """Take over PPO and the imitation."""
    _imitation(agent)
    ppo(agent, budget)
    _name(agent, "ppo_sil")


def _imitation(agent: Section) -> None:
    """What the on-policy algorithm does not know of; read first, so that it is not taken for superfluous."""
    settings, memory = agent.below("algorithm"), agent.below("memory")
    for key, native in (("sil_policy_loss_coef", "sil_policy_coef"), ("sil_val_loss_coef", "sil_value_coef")):
        settings.need(key)
        settings.copy(key, f"{NATIVE}.{native}")
    settings.ledger.set(f"{NATIVE}.sil_iter", gradient_steps(settings, iterations=1), settings.at("training_iter"))
    replay_settings(memory, "sil_replay_name")
    memory.ledger.remark(memory.at("sil_replay_name"), WHOLE)


def _name(agent: Section, name: str) -> None:
    settings = agent.below("algorithm")
    settings.ledger.set(f"{NATIVE}.name", name, settings.at("name"))
