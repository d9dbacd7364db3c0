"""One SLM-Lab spec, from its document to a native one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from operant.spec import algorithms
from operant.spec.dialects.slm.algorithms import ALGORITHMS, NEEDS
from operant.spec.dialects.slm.env import Budget, env
from operant.spec.dialects.slm.ledger import Ledger, Remark, Section
from operant.spec.dialects.slm.meta import meta
from operant.spec.dialects.slm.search import search
from operant.spec.dialects.slm.shape import is_older_form, unwrapped
from operant.spec.document import Document
from operant.spec.errors import span_of
from operant.spec.problems import Problem, nearest, report

SINGLE_BODY = ({}, {"product": "outer", "num": 1})


@dataclass(frozen=True)
class Translation:
    """A native document, whose marks lie in the SLM-Lab file, and what is to be said about it."""

    document: Document
    remarks: tuple[Remark, ...]


def translate(document: Document, lossy: bool = False) -> Translation:
    """The native form of an SLM-Lab spec; SpecError with everything that has no counterpart.

    `lossy` turns settings without counterpart into remarks, where a spec remains without them.
    """
    older = is_older_form(document.data)
    ledger = Ledger(unwrapped(document))
    _sections(Section(ledger, ()), older)
    problems = ledger.refusals if lossy else [*ledger.refusals, *ledger.losses]
    if problems:
        remedy = None if ledger.refusals else _remedy(document)
        raise report([replace(each, remedy=remedy) for each in problems], document.source.label)
    ordered = sorted([*ledger.remarks, *ledger.lost], key=_line)
    return Translation(ledger.native, tuple(ordered))


def _line(remark: Remark) -> tuple[int, int]:
    return (remark.at.line, remark.at.column) if remark.at else (0, 0)


def _remedy(document: Document) -> str:
    return f"operant convert {document.source.label} {document.data.get('name', '')} --lossy".replace("  ", " ")


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
        at = span_of(("agent", "algorithm", "name"), agent.ledger.slm)
        agent.ledger.refusals.append(Problem(f"SLM-Lab's {algorithm} has no counterpart in this version", at, hint))
        return
    agent.drop({"name": "left out: a label", "critic_net": "left out: only CrossQ reads it"})
    agent.close()
