"""One SLM-Lab spec, from its document to a native one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from operant.spec.dialects.conversion import Converter, Section
from operant.spec.dialects.slm.dqn import dqn
from operant.spec.dialects.slm.env import Budget, env
from operant.spec.dialects.slm.meta import meta, search
from operant.spec.dialects.slm.on_policy import a2c, random, reinforce, sarsa
from operant.spec.dialects.slm.ppo import ppo, ppo_sil, sil
from operant.spec.dialects.slm.sac import crossq, sac
from operant.spec.dialects.slm.shape import is_older_form, unwrapped
from operant.spec.dialects.table import Table
from operant.spec.errors import span_of
from operant.spec.reading.diagnostics import Diagnostic, nearest

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


SINGLE_BODY = ({}, {"product": "outer", "num": 1})


def _sections(top: Section) -> None:
    conversion, older = top.conversion, is_older_form(top.conversion.theirs.data)
    top.copy("name", "name")
    for key in ("agent", "env", "meta"):
        if isinstance(top.need(key), list):
            conversion.refuse(
                top.at(key), "holds several, which has no counterpart: one agent learns in one environment"
            )
            return
    top.get("search")
    top.drop({"spec_params": "left out: -s fills a placeholder, one value at a time"})
    if top.get("body", {}) not in SINGLE_BODY:
        conversion.refuse(top.at("body"), "has no counterpart: one agent learns in one environment")
    elif top.get("body"):
        conversion.remark(top.at("body"), "left out: one agent learns in one environment")
    budget = env(top.below("env"), older)
    _agent(top.below("agent"), budget)
    meta(top.below("meta"), budget)
    search(conversion)
    top.close()


def _agent(agent: Section, budget: Budget) -> None:
    algorithm: Any = agent.below("algorithm").need("name")
    if isinstance(algorithm, str) and algorithm in ALGORITHMS:
        ALGORITHMS[algorithm](agent, budget)
    elif algorithm is not None:
        near = nearest(str(algorithm), ALGORITHMS)
        hint = f"there are {', '.join(ALGORITHMS)}" + (f"; did you mean {near}?" if near else "")
        at = span_of(("agent", "algorithm", "name"), agent.conversion.theirs)
        agent.conversion.refusals.append(
            Diagnostic(f"SLM-Lab's {algorithm} has no counterpart in this version", at, hint)
        )
        return
    agent.drop({"name": "left out: a label", "critic_net": "left out: only CrossQ reads it"})
    agent.close()


convert = Converter("SLM-Lab", _sections, Table(), unwrapped)
