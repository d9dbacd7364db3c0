"""A person's game: a seed and the actions so far, from which the board, and any earlier one, follows."""

from __future__ import annotations

from typing import Any

from operant.envs.hackmatrix.constants import ACTION_NAMES, FIRST_PROGRAM, SIPHON
from operant.envs.hackmatrix.faces.events import step_with_events
from operant.envs.hackmatrix.faces.reasons import cost, why_not
from operant.envs.hackmatrix.faces.render import LEGEND, board, paint, status
from operant.envs.hackmatrix.faces.wire import observation
from operant.envs.hackmatrix.reference.game import Game

PROGRAM_KEYS = "1234567890fghjklzxcvbtyi"
KEYS = {"w": 0, "s": 1, "a": 2, "d": 3, "\x1b[A": 0, "\x1b[B": 1, "\x1b[D": 2, "\x1b[C": 3, " ": SIPHON, "e": SIPHON}
HELP = (
    "arrows or w a s d   go, or attack the first enemy or transmission in that line",
    "space or e          siphon your cell and its four neighbours",
    "1 2 3 ...           run the program with that key; only wait takes a turn",
    "u                   take the last action back      n   new game",
    "?                   this help                      q   quit",
)
SHORT_HELP = "arrows go/attack   space siphon   digits programs   u undo   n new   ? help   q quit"
EVENTS_SHOWN = 4


class InteractiveGame:
    """One game after the other. `message` is the answer to the last key, `events` those of the last action."""

    def __init__(self, seed: int) -> None:
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Start a new game."""
        self.seed = seed
        self.actions: list[int] = []
        self._replay()

    def act(self, action: int) -> None:
        """Play an action if it is legal and the game is not over; else say why it is not played."""
        self.message = ""
        if self.over:
            self.message = "The game is over: n for a new one, u to take the last action back, q to quit."
        elif not self.game.mask()[action]:
            self.message = f"{ACTION_NAMES[action]}: {why_not(self.game, action)}."
        else:
            self.actions.append(action)
            self._play(action)

    def undo(self) -> None:
        """Take the last action back, by playing all the others again."""
        if not self.actions:
            self.message = "There is nothing to take back."
            return
        self.actions.pop()
        self._replay()
        self.message = "Taken back."

    def program_action(self, key: str) -> int | None:
        """The action of the owned program that this key runs."""
        position = PROGRAM_KEYS.find(key) if len(key) == 1 else -1
        owned = self.game.state.owned
        return FIRST_PROGRAM + owned[position] if 0 <= position < len(owned) else None

    def _replay(self) -> None:
        self.game = Game(self.seed)
        self.total = 0.0
        self.over = False
        self.message = ""
        self.events: list[str] = []
        for action in self.actions:
            self._play(action)

    def _play(self, action: int) -> None:
        outcome, self.events = step_with_events(self.game, action)
        self.total += outcome.reward
        self.over = outcome.done or outcome.truncated

    def screen(self, rows: int, colour: bool = True, helping: bool = False) -> list[str]:
        """The lines to show in a terminal of that many rows."""
        obs = observation(self.game.state)
        head = [f"HackMatrix   seed {self.seed}   reward {self.total:+.2f}", *status(obs, colour)[:1]]
        if helping:
            return [*head, "", *HELP, "", *LEGEND]
        below = [*self._programs(obs, colour), *self._news(colour), SHORT_HELP]
        lines = [*head, *board(obs, colour), *below]
        return lines if len(lines) < rows else [*head, *board(obs, colour, compact=True), *below][: rows - 1]

    def _programs(self, obs: dict[str, Any], colour: bool) -> list[str]:
        """The owned programs with their keys and costs, four to a line; dim what cannot run now."""
        mask = self.game.mask()
        words = []
        for key, action in zip(PROGRAM_KEYS, obs["ownedPrograms"], strict=False):
            text = f"{key} {ACTION_NAMES[action]} {cost(action - FIRST_PROGRAM)}"
            words.append(paint(text, "bold" if mask[action] else "dim", colour))
        lines = ["   ".join(words[start : start + 4]) for start in range(0, len(words), 4)]
        return lines or ["no programs yet: siphon next to a program block"]

    def _news(self, colour: bool) -> list[str]:
        shown = self.events[:EVENTS_SHOWN]
        if len(self.events) > EVENTS_SHOWN:
            shown[-1] = f"... and {len(self.events) - EVENTS_SHOWN + 1} more: {self.events[-1]}"
        end = [paint("The game is over.", "virus", colour)] if self.over else []
        return [*shown, *end, *([paint(self.message, "bold", colour)] if self.message else [])]
