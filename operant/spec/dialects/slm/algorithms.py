"""Which algorithms of SLM-Lab have a counterpart: one function each, in a file of its own."""

from __future__ import annotations

from collections.abc import Callable

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.a2c import a2c
from operant.spec.dialects.slm.crossq import crossq
from operant.spec.dialects.slm.dqn import dqn
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.ppo import ppo
from operant.spec.dialects.slm.random import random
from operant.spec.dialects.slm.reinforce import reinforce
from operant.spec.dialects.slm.sac import sac
from operant.spec.dialects.slm.sarsa import sarsa
from operant.spec.dialects.slm.sil import ppo_sil, sil

Translator = Callable[[Section, Budget], None]

ALGORITHMS: dict[str, Translator] = {
    "PPO": ppo,
    "DQN": dqn,
    "DoubleDQN": dqn,
    "VanillaDQN": dqn,
    "ActorCritic": a2c,
    "Reinforce": reinforce,
    "SARSA": sarsa,
    "SoftActorCritic": sac,
    "CrossQ": crossq,
    "Random": random,
    "SIL": sil,
    "PPOSIL": ppo_sil,
}
# The native algorithm that a translation needs, where this version may lack it.
NEEDS = {"CrossQ": "crossq"}
