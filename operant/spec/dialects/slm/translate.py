"""One SLM-Lab spec, from its document to a native one."""

from __future__ import annotations

from typing import Any

from operant.spec import algorithms
from operant.spec.dialects.ledger import Ledger, Section
from operant.spec.dialects.slm.algorithms import ALGORITHMS, NEEDS
from operant.spec.dialects.slm.env import Budget, env
from operant.spec.dialects.slm.meta import meta
from operant.spec.dialects.slm.search import search
from operant.spec.dialects.slm.shape import is_older_form, unwrapped
from operant.spec.dialects.translation import Translation, finished
from operant.spec.document import Document
from operant.spec.errors import span_of
from operant.spec.problems import Problem, nearest

SINGLE_BODY = ({}, {"product": "outer", "num": 1})


def translate(document: Document, lossy: bool = False) -> Translation:
    """The native form of an SLM-Lab spec; SpecError with everything that has no counterpart.

    `lossy` turns settings without counterpart into remarks, where a spec remains without them.
    """
    older = is_older_form(document.data)
    ledger = Ledger(unwrapped(document))
    _sections(Section(ledger, ()), older)
    return finished(ledger, document, lossy)


def _sections(top: Section, older: bool) -> None:
    ledger = top.ledger
    top.copy("name", "name")
    for key in ("agent", "env", "meta"):
        if isinstance(top.need(key), list):
            ledger.refuse(top.at(key), "holds several, which has no counterpart: one agent learns in one environment")
            return
    top.get("search")
    top.drop({"spec_params": "left out: -s fills a placeholder, one value at a time"})
    if top.get("body", {}) not in SINGLE_BODY:
        ledger.refuse(top.at("body"), "has no counterpart: one agent learns in one environment")
    elif top.get("body"):
        ledger.remark(top.at("body"), "left out: one agent learns in one environment")
    budget = env(top.below("env"), older)
    _agent(top.below("agent"), budget)
    meta(top.below("meta"), budget)
    search(ledger)
    top.close()


def _agent(agent: Section, budget: Budget) -> None:
    algorithm: Any = agent.below("algorithm").need("name")
    known = [name for name in ALGORITHMS if NEEDS.get(name, "ppo") in algorithms.ALGORITHMS]
    if isinstance(algorithm, str) and algorithm in known:
        ALGORITHMS[algorithm](agent, budget)
    elif algorithm is not None:
        near = nearest(str(algorithm), known)
        hint = f"there are {', '.join(known)}" + (f"; did you mean {near}?" if near else "")
        at = span_of(("agent", "algorithm", "name"), agent.ledger.theirs)
        agent.ledger.refusals.append(Problem(f"SLM-Lab's {algorithm} has no counterpart in this version", at, hint))
        return
    agent.drop({"name": "left out: a label", "critic_net": "left out: only CrossQ reads it"})
    agent.close()
