"""The grid hacking game as a dialogue: a board to read, one action a turn, until the game or the turns are over.

The score is the game's own return, on the seeds that the other engines are evaluated on, so that a prompted model, a
trained one and a network stand in one table.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal, get_args

from operant.envs.hackmatrix.constants import ACTION_NAMES
from operant.envs.hackmatrix.faces.text import TextGame, find_action
from operant.envs.text.dialogue import Dialogue, DialogueTask, Message, Response, Scripted
from operant.envs.text.generated import at_least
from operant.envs.text.hackmatrix import worth
from operant.envs.text.task import Problem, Verdict
from operant.errors import UsageError

FIRST_EVAL_SEED = 1_000_000
Style = Literal["words", "short", "bare"]
MOST_PENALTY = 1000
ASK = "Answer with the name of one legal action."


class HackMatrixGame(DialogueTask):
    """Whole games of at most `turns` actions (final).

    `style: short` has the rules and a board of few tokens, `style: bare` the drawn board without the rules. Each
    answer that names no legal action takes `fault_penalty` from what is learnt from, not from the score: nothing
    happens on the board then, so that otherwise it would pay to say nothing.
    """

    QUICK = True

    def __init__(
        self,
        turns: int = 50,
        style: Style = "words",
        size: int = 10_000,
        eval_size: int = 200,
        max_tokens: int = 32,
        fault_penalty: float = 0.1,
    ) -> None:
        self.name = "hackmatrix_game"
        if style not in get_args(Style):
            remedy = f"style: one of {', '.join(get_args(Style))}"
            raise UsageError(f"{self.name}: there is no style {style!r}", remedy=remedy)
        for what, number in (("turns", turns), ("size", size), ("eval_size", eval_size), ("max_tokens", max_tokens)):
            at_least(self.name, what, number, 1)
        if size > FIRST_EVAL_SEED:
            raise UsageError(
                f"{self.name}: size must be at most {FIRST_EVAL_SEED:,}, so that no game is in both splits",
                remedy=f"size: {FIRST_EVAL_SEED}, or less",
            )
        self._turns = turns
        self.style: Style = style
        self.sizes = {"train": size, "eval": eval_size}
        self.max_tokens = max_tokens
        if not isinstance(fault_penalty, int | float) or not 0 <= fault_penalty <= MOST_PENALTY:
            cause = f"{self.name}: fault_penalty must be a number from 0 to {MOST_PENALTY}"
            raise UsageError(cause, remedy="fault_penalty: 0.1")
        self.fault_penalty = fault_penalty

    @property
    def turns(self) -> int:
        """The most actions of a game."""
        return self._turns

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """Games by their seeds."""
        first = FIRST_EVAL_SEED if split == "eval" else 0
        return [self._problem(split, index, first + index) for index in range(self.sizes[split])]

    def _problem(self, split: str, index: int, seed: int) -> Problem:
        return Problem(
            id=f"{self.name}/{split}/{index}",
            task=self.name,
            prompt=f"the game of seed {seed}",
            answer={"seed": seed},
            stop=("\n",) if self.style == "bare" else (),
            max_tokens=self.max_tokens,
            seed=seed,
        )

    def begin(self, problem: Problem, seed: int) -> Dialogue:
        """A new game of the problem's seed."""
        del seed
        return PlayedGame(TextGame(problem.answer["seed"]), self.style, self.fault_penalty)

    def resume(self, problem: Problem, seed: int, snapshot: bytes) -> Dialogue:
        """The game as it was."""
        del problem, seed
        game, faults, turns = pickle.loads(snapshot)  # our own bytes: no word of a policy is in them
        dialogue = PlayedGame(game, self.style, self.fault_penalty)
        dialogue.faults, dialogue.turns = faults, turns
        return dialogue

    def agents(self) -> Mapping[str, Scripted]:
        """One that plays by chance, one that always takes the first legal action, one that looks a step ahead."""
        return {
            "novice": Scripted("novice", "novice", _by_chance),
            "first": Scripted("first", "lazy", lambda _, said: _legal(said)[0]),
            "greedy": Scripted("greedy", "expert", _greedy),
        }


class PlayedGame(Dialogue):
    """One game under way (final)."""

    def __init__(self, game: TextGame, style: Style, fault_penalty: float) -> None:
        self.game = game
        self.style = style
        self.fault_penalty = fault_penalty
        self.faults = 0
        self.turns = 0

    def opening(self) -> tuple[Message, ...]:
        """The rules and the board."""
        rules = () if self.style == "bare" else (Message("system", f"{TextGame.introduction()}\n{ASK}"),)
        return (*rules, Message("user", f"{self._board()}\n"))

    def _board(self) -> str:
        return self.game.view(short=self.style == "short")

    def hear(self, text: str, cut: bool = False) -> Response:
        """Play the action named in the last line that names one."""
        del cut
        lines = [line for line in text.splitlines() if line.strip()]
        named = next((line for line in reversed(lines) if find_action(line) is not None), text)
        turn = self.game.act(named)
        self.turns += 1
        self.faults += not turn.played
        reply = turn.text if turn.done else f"{turn.text}\n{self._board()}"
        return Response(
            messages=(Message("user", f"\n{reply}\n"),),
            reward=turn.reward if turn.played else None,
            fault=None if turn.played else turn.text,
            done=turn.done,
        )

    def verdict(self) -> Verdict:
        """The return of the game so far, and how far it came."""
        state, total = self.game.game.state, self.game.total
        learned = total - self.fault_penalty * self.faults
        parts = {"final": learned, "delta": learned, "stage": float(state.stage), "faults": float(self.faults)}
        return Verdict(total, "partial", parts, f"stage {state.stage} after {self.turns} actions")

    def snapshot(self) -> bytes:
        """The game and its random source."""
        return pickle.dumps((self.game, self.faults, self.turns))


def _legal(said: Sequence[Message]) -> list[str]:
    """The legal actions by name, as the last board lists them."""
    listed = said[-1].text.partition("legal actions:\n")[2].splitlines()
    return [name for line in listed if (name := line.strip().partition(":")[0]) in ACTION_NAMES]


def _by_chance(problem: Problem, said: Sequence[Message]) -> str:
    return Random(f"{problem.id}/{len(said)}").choice(_legal(said))


def _greedy(problem: Problem, said: Sequence[Message]) -> str:
    """The action that earns most at once, found by playing the same game again up to here."""
    game = TextGame(problem.answer["seed"])
    for message in said:
        if message.role == "assistant":
            game.act(message.text)
    earns = worth(game.game)
    return max(earns, key=earns.__getitem__)
