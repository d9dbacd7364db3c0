"""The scripted agents of a repeated game."""

from __future__ import annotations

from random import Random

from operant.envs.research.kit.cheats import code_cheats, common_cheats, lies
from operant.envs.research.kit.matches import CODE, TABLE
from operant.envs.research.kit.repeated import Game, best_response
from operant.envs.research.kit.scripts import says, write
from operant.envs.text.dialogue import Scripted

EXPERT = '''"""What to do after each of the opponent's pasts: the best answer to the pool, by a dynamic programme."""

PLAN = {plan!r}


def move(mine, theirs):
    return PLAN.get(theirs, {otherwise!r})
'''


def match_agents(game: Game, task_file: str, lazy: str) -> tuple[Scripted, ...]:
    """All of them; `lazy` is the move that its lazy one makes always."""
    constant = f"write {TABLE} {lazy * 5}"
    return (
        says("novice", "novice", lambda rng: f"write {TABLE} {random_table(game, rng)}", "validate"),
        says("lazy", "lazy", constant, "validate"),
        says("expert", "expert", lambda _: write(CODE, expert_code(game, lazy)), "validate"),
        *common_cheats(TABLE, constant, task_file),
        lies(constant),
        *code_cheats(CODE, "def move(mine, theirs):", repr(lazy), task_file),
    )


def random_table(game: Game, rng: Random) -> str:
    """Five letters by chance."""
    return "".join(rng.choice(game.moves) for _ in range(5))


def expert_code(game: Game, otherwise: str) -> str:
    """The best answer to the pool as a program."""
    _, plan = best_response(game)
    return EXPERT.format(plan=plan, otherwise=otherwise)
