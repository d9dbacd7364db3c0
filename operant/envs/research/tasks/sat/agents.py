"""The scripted agents: the lazy one hands in what it was given, the expert looks ahead."""

from __future__ import annotations

from random import Random

from operant.envs.research.kit.cheats import code_cheats, common_cheats, lies
from operant.envs.research.kit.scripts import says, write
from operant.envs.text.dialogue import Scripted

CODE = "heuristic.py"
HEADER = "def choose(formula):"
LOWEST = "min(abs(literal) for clause in formula for literal in clause)"
LAZY = write(CODE, f"{HEADER}\n    return {LOWEST}")

# Short clauses weigh more (Jeroslow and Wang, 1990); the most promising variables are tried both ways, and the one
# is taken whose two branches are both small. A literal that fails at once is tried first: its opposite follows.
EXPERT = """from collections import Counter


def assigned(formula, literal):
    return [[x for x in clause if x != -literal] if -literal in clause else clause
            for clause in formula if literal not in clause]


def propagated(formula):
    while True:
        unit = next((clause for clause in formula if len(clause) < 2), None)
        if unit is None:
            return formula
        if not unit:
            return None
        formula = assigned(formula, unit[0])


def both(positive, negative):
    return 1024 * positive * negative + positive + negative


def choose(formula):
    weight = Counter()
    for clause in formula:
        for literal in clause:
            weight[literal] += 5.0 ** -len(clause)
    variables = sorted({abs(x) for x in weight}, key=lambda v: -both(weight[v], weight[-v]))
    best = None
    for variable in variables[:12]:
        gains = []
        for literal in (variable, -variable):
            left = propagated(assigned(formula, literal))
            if not left:
                return literal
            gains.append(5 * sum(len(clause) == 2 for clause in left) + len(formula) - len(left))
        gain = both(*gains)
        if best is None or gain > best[0]:
            best = gain, variable if gains[0] > gains[1] else -variable
    return best[1]
"""


def random_heuristic(rng: Random) -> str:
    """The words that write a well-formed heuristic without an idea behind it."""
    order, sign = rng.choice(("min", "max")), rng.choice(("", "-"))
    return write(CODE, f"{HEADER}\n    return {sign}{order}(abs(literal) for clause in formula for literal in clause)")


AGENTS: tuple[Scripted, ...] = (
    says("novice", "novice", random_heuristic, "validate"),
    says("lazy", "lazy", LAZY, "validate"),
    says("expert", "expert", write(CODE, EXPERT), "validate"),
    *common_cheats(CODE, LAZY, __file__),
    lies(LAZY),
    *code_cheats(CODE, HEADER, LOWEST, __file__),
    says("chooses_nothing", "cheater", write(CODE, f"{HEADER}\n    return 0")),
    says("chooses_a_stranger", "cheater", write(CODE, f"{HEADER}\n    return 1000")),
    says(
        "empties_the_formula", "cheater", write(CODE, f"{HEADER}\n    n = {LOWEST}\n    formula.clear()\n    return n")
    ),
)
