"""The generals one meets: each sends his 120 soldiers to the six fields one by one, by chances of his own."""

from __future__ import annotations

from math import comb

import numpy as np

SOLDIERS, FIELDS = 120, 6

# How often a general is met, and his chances for the six fields, in 120ths.
GENERALS = (
    (3, (30, 30, 26, 26, 4, 4)),
    (2, (36, 34, 30, 8, 6, 6)),
    (3, (40, 24, 18, 16, 12, 10)),
    (2, (22, 22, 22, 22, 22, 10)),
    (1, (8, 8, 26, 26, 26, 26)),
)
OFTEN = np.array([often for often, _ in GENERALS]) / sum(often for often, _ in GENERALS)
CHANCES = np.array([chances for _, chances in GENERALS]) / SOLDIERS


def drawn_plans(battles: int, seed: int) -> np.ndarray:
    """The opponents' plans in so many battles."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(SOLDIERS, CHANCES[rng.choice(len(GENERALS), battles, p=OFTEN)])


def worth() -> np.ndarray:
    """What so many soldiers on a field are worth on average, exactly: [field, soldiers].

    A field won counts 1, a field lost -1, divided by the number of fields. On each field a general's soldiers are
    binomially distributed.
    """
    counts = np.arange(SOLDIERS + 1)
    ways = np.array([float(comb(SOLDIERS, int(count))) for count in counts])
    chance = CHANCES[:, :, None]
    met = (OFTEN[:, None, None] * ways * chance**counts * (1 - chance) ** (SOLDIERS - counts)).sum(0)
    at_most = met.cumsum(1)
    return (at_most - met - (1 - at_most)) / FIELDS


def best_plan() -> tuple[float, tuple[int, ...]]:
    """The most that any plan earns on average, and that plan, by a dynamic programme over fields and soldiers spent.

    Fields add up and opponents do not react, so nothing but the numbers on the fields matters: this is the optimum.
    """
    gains = worth()
    best = np.full(SOLDIERS + 1, -np.inf)
    best[0] = 0.0
    choices: list[list[int]] = []
    for gain in gains:
        options = [best[spent::-1][: spent + 1] + gain[: spent + 1] for spent in range(SOLDIERS + 1)]
        choices.append([int(np.argmax(option)) for option in options])
        best = np.array([option.max() for option in options])
    plan, left = [], SOLDIERS
    for chosen in reversed(choices):
        plan.append(chosen[left])
        left -= chosen[left]
    return float(best[SOLDIERS]), tuple(reversed(plan))
