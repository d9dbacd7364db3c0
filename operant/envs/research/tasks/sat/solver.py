"""Random formulas of three literals a clause, and the search whose branching is graded.

The search belongs to the grader: it splits on the literal it is given, follows every clause of one literal, and goes
back when a clause is empty. It is a complete one (Davis, Putnam, Logemann and Loveland, 1962), so whatever the
heuristic says, only the number of its decisions can change, never the answer.
"""

from __future__ import annotations

import random

Clause = tuple[int, ...]
Formula = list[Clause]


def random_formula(variables: int, clauses: int, rng: random.Random) -> Formula:
    """Clauses of three different variables, each negated by the toss of a coin."""
    return [
        tuple(variable if rng.random() < 0.5 else -variable for variable in rng.sample(range(1, variables + 1), 3))
        for _ in range(clauses)
    ]


def assigned(formula: Formula, literal: int) -> Formula:
    """What is left of a formula when a literal is true."""
    return [
        tuple(other for other in clause if other != -literal) if -literal in clause else clause
        for clause in formula
        if literal not in clause
    ]


def propagated(formula: Formula) -> Formula | None:
    """The formula after all its clauses of one literal are followed; None where they contradict each other."""
    while true := {clause[0] for clause in formula if len(clause) == 1}:
        false = {-literal for literal in true}
        if not true.isdisjoint(false):
            return None
        formula = [
            clause if false.isdisjoint(clause) else tuple(literal for literal in clause if literal not in false)
            for clause in formula
            if true.isdisjoint(clause)
        ]
        if () in formula:
            return None
    return formula


class Search:
    """A search under way. `formula` waits for a decision; it is None when the search is over."""

    def __init__(self, formula: Formula) -> None:
        self.decisions = 0
        self.satisfied: bool | None = None
        self._open: list[Formula] = []
        self.formula: Formula | None = None
        self._go_on(propagated(formula))

    def decide(self, literal: int) -> None:
        """Try a literal, and its opposite should it fail."""
        assert self.formula is not None, "the search is over"
        self.decisions += 1
        self._open.append(assigned(self.formula, -literal))
        self._go_on(propagated(assigned(self.formula, literal)))

    def _go_on(self, formula: Formula | None) -> None:
        while formula is None and self._open:
            formula = propagated(self._open.pop())
        if formula:
            self.formula = formula
            return
        self.formula, self.satisfied = None, formula is not None


def lowest(formula: Formula) -> int:
    """The plainest choice: the first variable that is left, set to true."""
    return min(abs(literal) for clause in formula for literal in clause)


def plain_decisions(formula: Formula) -> int:
    """How many decisions the plainest choice makes."""
    search = Search(formula)
    while search.formula is not None:
        search.decide(lowest(search.formula))
    return search.decisions
