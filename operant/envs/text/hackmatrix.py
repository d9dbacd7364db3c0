"""The grid hacking game one move at a time: a board as text, and the move that pays most at once.

The whole game, turn after turn, is an environment of its own; here each position is a problem by itself, so that a
language model and a trained policy can be asked the same question.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from random import Random
from typing import Any

from operant.envs.hackmatrix.constants import ACTION_NAMES
from operant.envs.hackmatrix.faces.text import TextGame, find_action
from operant.envs.hackmatrix.reference.game import Game
from operant.envs.text.generated import Generated, at_least
from operant.envs.text.task import RIGHT, UNPARSED, Problem, Verdict

LEGAL = 0.1
ASK = "Which of the legal actions earns most at once? Answer with its name only."


class HackMatrix(Generated):
    """The best next move after up to `moves` random legal ones (final).

    A best action is worth 1, a legal one 0.1 and its share of what lies between the worst and the best, all
    others 0. A position in which every action earns the same is no problem and is not drawn.
    """

    def __init__(self, moves: int = 20, **common: Any) -> None:
        super().__init__("hackmatrix", **common)
        at_least(self.name, "moves", moves, 0)
        self.moves = moves

    def draw(self, rng: Random) -> tuple[int, int]:
        """The seed of a game, and how many moves were made."""
        while True:
            puzzle = rng.randrange(2**31), rng.randint(0, self.moves)
            game = position(*puzzle)
            if game is not None and len(set(worth(game).values())) > 1:
                return puzzle

    def pose(self, puzzle: tuple[int, int]) -> tuple[str, dict[str, float]]:
        """Rules, board and legal actions, and what each of these earns."""
        game = position(*puzzle)
        assert game is not None, "only positions of games that go on are drawn"
        text_game = TextGame()
        text_game.game = game
        rules = "" if self.style == "bare" else f"{TextGame.introduction()}\n\n"
        return f"{rules}{text_game.view()}\n{ASK}\n", worth(game)

    def longest_answer(self) -> int:
        """The longest name of an action, and a character to end with."""
        return max(map(len, ACTION_NAMES)) + 1

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """By what the action earns that is named in a line of its own, or else as the last word; several are none."""
        lines = [line for line in completion.splitlines() if line.strip()]
        named = {action for line in lines if (action := find_action(line)) is not None}
        if not named and lines and (last := find_action(lines[-1].split()[-1])) is not None:
            named = {last, *(find_action(word) for word in re.findall(r"[a-z_]+", lines[-1].lower()))} - {None}
        if len(named) != 1:
            return UNPARSED
        (found,) = named
        earns, name = problem.answer, ACTION_NAMES[found]
        if name not in earns:
            return Verdict(0.0, "wrong", note=f"{name} is not legal")
        best, worst = max(earns.values()), min(earns.values())
        if earns[name] == best:
            return RIGHT
        share = (earns[name] - worst) / (best - worst)
        return Verdict(
            LEGAL + (1 - 2 * LEGAL) * share, "partial", note=f"{name} earns {earns[name]:+.2f} of {best:+.2f}"
        )

    def gold(self, problem: Problem) -> str:
        """The first of the best actions."""
        return max(problem.answer, key=problem.answer.__getitem__)

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """Another position's best action, unless it is as good here."""
        del rng
        name = self.gold(other)
        return None if problem.answer.get(name) == max(problem.answer.values()) else name

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The name in other forms."""
        del rng
        name = self.gold(problem)
        if self.style == "bare":
            return {"alone": name, "small letters": name.lower()}
        return {
            "small letters": name.lower(),
            "large letters": name.upper(),
            "sentence": f"The best action is {name}.",
            "bold": f"**{name}**",
            "in quotes": f'"{name}"',
            "after thoughts": f"Let me look at the board.\n\n{name}",
        }

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Actions that earn less, and one that is not legal."""
        best = max(problem.answer.values())
        less = [name for name, value in problem.answer.items() if value < best]
        illegal = [name for name in ACTION_NAMES if name not in problem.answer]
        misses = {"earns less": rng.choice(less), "not legal": rng.choice(illegal) if illegal else "none"}
        return {**misses, "taken back": f"{self.gold(problem)}\n{rng.choice(less)}"}

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No action, or all of them."""
        names = list(problem.answer)
        return {**super().cheats(problem), "all actions": ", ".join(names), "all in lines": "\n".join(names)}


def position(seed: int, moves: int) -> Game | None:
    """The game of a seed after random legal moves; None if it was over before."""
    game, rng = Game(seed), Random(seed)
    for _ in range(moves):
        outcome = game.step(rng.choice(list(game.legal())))
        if outcome.done or outcome.truncated:
            return None
    return game


def worth(game: Game) -> dict[str, float]:
    """What each legal action would earn at once, by name."""
    return {ACTION_NAMES[action]: round(copy.deepcopy(game).step(action).reward, 6) for action in game.legal()}
