"""The scripted agents: the lazy one spreads its soldiers evenly."""

from __future__ import annotations

from random import Random

from operant.envs.research.kit.cheats import common_cheats, lies
from operant.envs.research.kit.scripts import says, write
from operant.envs.text.dialogue import Scripted

from .generals import FIELDS, SOLDIERS, best_plan

PLAN = "plan.txt"
STEP = 5
EVEN = f"write {PLAN} 20 20 20 20 20 20"

# Numbers that must not count as soldiers.
STRANGE = {
    "says_negative": "-1000 224 224 224 224 224",
    "says_nan": "nan nan nan nan nan nan",
    "says_infinite": "inf inf inf inf inf inf",
    "says_too_many": "120 120 120 120 120 120",
    "says_huge": "9" * 5000 + " 0 0 0 0 0",
    "says_floats": "1e2 1e1 1e1 0 0 0",
    "says_other_digits": "\N{ARABIC-INDIC DIGIT TWO}0 20 20 20 20 20",
    "says_more_fields": "20 20 20 20 20 20 0 0 0",
    "says_code": "__import__('os')._exit(0)",
    "says_lists": "[120, 120, 120, 120, 120, 120]",
    "says_score": '{"score": 1000000.0}',
}


def random_plan(rng: Random) -> str:
    """The words that write a plan in fives, cut at random places; coarser plans would hide the better ones."""
    cuts = sorted(STEP * rng.randint(0, SOLDIERS // STEP) for _ in range(FIELDS - 1))
    parts = [high - low for low, high in zip((0, *cuts), (*cuts, SOLDIERS), strict=True)]
    return f"write {PLAN} {' '.join(map(str, parts))}"


def expert_plan(_: Random) -> str:
    """The words that write the best plan."""
    return f"write {PLAN} {' '.join(map(str, best_plan()[1]))}"


AGENTS: tuple[Scripted, ...] = (
    says("novice", "novice", random_plan, "validate"),
    says("lazy", "lazy", EVEN, "validate"),
    says("expert", "expert", expert_plan, "validate"),
    *common_cheats(PLAN, EVEN, __file__),
    lies(EVEN),
    *(says(name, "cheater", write(PLAN, text)) for name, text in STRANGE.items()),
)
