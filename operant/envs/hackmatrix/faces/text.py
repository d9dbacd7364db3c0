"""The game as text, for language models and for pipes: a board to read, actions by name, events in sentences.

game = TextGame(seed=7)
print(game.view())
turn = game.act("up")
print(turn.text, turn.reward, turn.done)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from operant.envs.hackmatrix.constants import ACTION_NAMES
from operant.envs.hackmatrix.faces import render
from operant.envs.hackmatrix.faces.events import step_with_events
from operant.envs.hackmatrix.faces.reasons import prospect, why_not
from operant.envs.hackmatrix.faces.set_state import ALIASES
from operant.envs.hackmatrix.faces.wire import observation
from operant.envs.hackmatrix.reference.game import Game

LONGEST_NUMBER = 9  # digits: Python refuses to read thousands of them

RULES = """\
You are @ on a 6 x 6 board. Rows count upwards, so up is row + 1. Reach the EXIT of 8 stages; you die at 0 hp.
up, down, left, right attack the first enemy or transmission in that line; if there is none before a block or
the edge, you walk one cell. Walking onto S gives a data siphon. Only siphon collects: it takes credits, energy,
points and programs from your cell and its four neighbours, and every block it opens calls transmissions, which
hatch into enemies. Enemies next to you attack in their turn, the others come nearer. Programs cost credits (c)
and energy (e) and, but for wait, take no turn. Now and then a scheduled task sends one more transmission."""


@dataclass(frozen=True)
class Turn:
    """The answer to an action. `played` is false when it was not one that can be played; nothing changed then."""

    text: str
    played: bool
    reward: float = 0.0
    done: bool = False


class TextGame:
    """One game as text."""

    def __init__(self, seed: int | None = None) -> None:
        self.game = Game(seed)
        self.total = 0.0
        self.done = False

    @staticmethod
    def introduction() -> str:
        """The rules in short, and what the signs on the board mean."""
        return "\n".join([RULES, *render.LEGEND])

    def view(self, short: bool = False) -> str:
        """The status, the board and the legal actions; `short` has a line for each row of the board."""
        obs = observation(self.game.state)
        cells = render.rows(obs) if short else render.board(obs, colour=False)
        return "\n".join([*render.status(obs, colour=False), *cells, *self._choices()])

    def act(self, text: str) -> Turn:
        """Play an action by its name or number; an answer that helps where it is none, or not a legal one."""
        if self.done:
            return Turn("The game is over.", played=False, done=True)
        action = find_action(text)
        if action is None:
            return Turn(f"{_no_such(text)} {self._legal_names()}", played=False)
        if not self.game.mask()[action]:
            reason = why_not(self.game, action)
            return Turn(f"{ACTION_NAMES[action]} is not legal: {reason}. {self._legal_names()}", played=False)
        return self._play(action)

    def _play(self, action: int) -> Turn:
        outcome, events = step_with_events(self.game, action)
        self.done = outcome.done or outcome.truncated
        self.total += outcome.reward
        lines = [*events, "The time is up."] if outcome.truncated else events
        text = "\n".join([*lines, f"reward {outcome.reward:+.2f}, {self.total:+.2f} in all"])
        return Turn(text, played=True, reward=outcome.reward, done=self.done)

    def _choices(self) -> list[str]:
        return ["legal actions:", *(f"  {ACTION_NAMES[a]}: {prospect(self.game, a)}" for a in self.game.legal())]

    def _legal_names(self) -> str:
        return f"Legal now: {', '.join(ACTION_NAMES[action] for action in self.game.legal())}."


def find_action(text: str) -> int | None:
    """The action that a name or a number means, whatever its case and the words around it; None if it means none."""
    word = re.sub(r"^(action|go|move|run|use|program)\s+", "", text.strip().strip("`'\"*.").lower())
    word = ALIASES.get(word, word)
    if word.isdecimal():
        number = int(word[:LONGEST_NUMBER])
        return number if len(word) <= LONGEST_NUMBER and number < len(ACTION_NAMES) else None
    return ACTION_NAMES.index(word) if word in ACTION_NAMES else None


def _no_such(text: str) -> str:
    asked = text.strip()[:40]
    near = get_close_matches(asked.lower(), [*ACTION_NAMES, *ALIASES], n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    return f"There is no action {asked!r}.{guess}"
