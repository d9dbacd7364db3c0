"""How SLM-Lab's Q-learners explore: `action_policy` and `explore_var_spec`."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.offered import NATIVE, offers
from operant.spec.dialects.slm.schedule import schedule

NO_BOLTZMANN = "has no counterpart in this version; there is epsilon_greedy"


def exploration(settings: Section, algorithm: str) -> None:
    """Take over the policy and its variable: epsilon, or the temperature of a Boltzmann policy."""
    settings.get("action_pdtype")  # the policy decides how actions are drawn, not the distribution
    policy = settings.need("action_policy")
    if policy == "epsilon_greedy":
        settings.need("explore_var_spec")
        schedule(settings, "explore_var_spec", f"{NATIVE}.epsilon")
    elif policy == "boltzmann" and offers(algorithm, "exploration"):
        settings.need("explore_var_spec")
        settings.ledger.set(f"{NATIVE}.exploration", "boltzmann", settings.at("action_policy"))
        schedule(settings, "explore_var_spec", f"{NATIVE}.temperature")
    else:
        settings.ledger.lose(settings.at("action_policy"), NO_BOLTZMANN)
        settings.drop({"explore_var_spec": "left out with its action policy: epsilon is the native default"})
