"""Which algorithms of SLM-Lab have a counterpart: one function each, in a file of its own."""

from __future__ import annotations

from collections.abc import Callable

from operant.spec.dialects.slm.dqn import dqn
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.ledger import Section
from operant.spec.dialects.slm.ppo import ppo

Translator = Callable[[Section, Budget], None]

ALGORITHMS: dict[str, Translator] = {"PPO": ppo, "DQN": dqn, "DoubleDQN": dqn, "VanillaDQN": dqn}
