"""Grading a strategy in a repeated game: a file of code that is asked through a pipe, or a table of five letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from operant.envs.research.grading import Player, Unfit, Work
from operant.envs.research.kit.repeated import Game, Pasts, from_table, play, play_fixed

CODE, TABLE = "strategy.py", "policy.txt"
GAMES = 1000
SECONDS = 5.0

# The strategy is loaded at the first question, when the pipes are out of its reach.
RUNNER = """
def decide(pasts):
    from strategy import move
    return [move(mine, theirs) for mine, theirs in pasts]

answer(decide)
"""


def grade_match(work: Work, game: Game) -> float:
    """The mean payoff of a round; code goes before the table where there are both."""
    if CODE not in work.artefacts:
        strategy = from_table(game, checked_table(work.text(TABLE), game))
        return play_fixed(game, strategy, GAMES, work.seed)
    with work.player(RUNNER, {CODE: work.artefacts[CODE]}, SECONDS) as player:
        return play(game, lambda pasts: asked_moves(player, pasts, game), GAMES, work.seed)


def checked_table(text: str, game: Game) -> str:
    """The table of a file; `Unfit` where it is none."""
    table = "".join(text.split())
    if len(table) != 5 or not set(table) <= set(game.moves):
        raise Unfit(f"{TABLE} must be five letters of {game.moves}, such as {game.moves[0] * 5}: {text[:40]!r}")
    return table


def asked_moves(player: Player, pasts: Pasts, game: Game) -> Sequence[str]:
    """A move for every history, as the program says; `Unfit` where it says anything else."""
    answer: Any = player.ask(pasts)
    if type(answer) is not list or len(answer) != len(pasts):
        raise Unfit("the strategy must give one move for every history")
    for move in answer:
        if type(move) is not str or move not in tuple(game.moves):
            raise Unfit(f"move(mine, theirs) must give one of {game.moves}, not {str(move)[:40]!r}")
    return answer
