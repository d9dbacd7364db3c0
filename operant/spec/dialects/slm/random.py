"""Random: there is nothing to take over but its name."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.env import Budget

NATIVE = "agent.algorithm"


def random(agent: Section, budget: Budget) -> None:
    """Random play; whatever is said about learning changes nothing."""
    settings = agent.below("algorithm")
    settings.ledger.set(f"{NATIVE}.name", "random", settings.at("name"))
    for section in (settings, agent.below("memory"), agent.below("net")):
        section.drop(dict.fromkeys(section.unread(), "left out: random play does not read it"))
