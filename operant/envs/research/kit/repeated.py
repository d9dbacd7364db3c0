"""Repeated games of two moves against a pool of opponents: played, valued exactly, and solved.

A history is two strings of equal length, one's own moves and the other's. Who is met is drawn anew for every game
and never told, so the best there is comes from a dynamic programme over histories: it weighs every opponent by how
likely it made the moves seen so far. No strategy can earn more, for games share nothing but the pool.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Strategy = Callable[[str, str], str]
Pasts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Opponent:
    """One of a pool: `first(own past, the other's past)` is its probability of the game's first move."""

    name: str
    weight: float
    first: Callable[[str, str], float]


@dataclass(frozen=True)
class Game:
    """`payoff` is what one earns in a round, by one's own move and the other's, such as "AB"."""

    moves: str
    payoff: Mapping[str, float]
    rounds: int
    pool: tuple[Opponent, ...]

    @property
    def weights(self) -> np.ndarray:
        """How often each opponent is met."""
        weights = np.array([opponent.weight for opponent in self.pool])
        return weights / weights.sum()

    def chances(self, mine: str, theirs: str) -> np.ndarray:
        """Each opponent's probability of the first move after this history."""
        return np.array([opponent.first(theirs, mine) for opponent in self.pool])


@dataclass(frozen=True)
class Alike:
    """Games (by their numbers) against one opponent that have all gone the same way so far."""

    opponent: int
    mine: str
    theirs: str
    games: np.ndarray


def play(game: Game, decide: Callable[[Pasts], Sequence[str]], games: int, seed: int) -> float:
    """The mean payoff of a round over so many games at once; `decide` gives a move for every history.

    Opponents are drawn independently, so one game tells nothing of another; afterwards each counts by its weight,
    not by how often it happened to be met, which takes most of the luck out.
    """
    return _play(game, lambda alike: _of_every_game(decide, alike), games, seed)


def play_fixed(game: Game, strategy: Strategy, games: int, seed: int) -> float:
    """The same for a strategy without chance, which need not be asked twice after one history."""
    return _play(game, lambda alike: [strategy(each.mine, each.theirs) for each in alike], games, seed)


def _play(game: Game, choose: Callable[[Sequence[Alike]], Sequence[str | np.ndarray]], games: int, seed: int) -> float:
    """`choose` gives for each bundle of games one move, or one for each of its games."""
    rng = np.random.default_rng(seed)
    met = rng.choice(len(game.pool), size=games, p=game.weights)
    alike = [Alike(one, "", "", np.flatnonzero(met == one)) for one in np.unique(met)]
    earned = np.zeros(games)
    for _ in range(game.rounds):
        luck = rng.random(games)
        alike = [
            part
            for each, moves in zip(alike, choose(alike), strict=True)
            for part in _parted(game, each, moves, luck, earned)
        ]
    times = np.bincount(met, minlength=len(game.pool))
    means = np.bincount(met, earned, minlength=len(game.pool)) / np.maximum(times, 1)
    return float(game.weights @ means) / game.rounds


def _parted(game: Game, alike: Alike, moves: str | np.ndarray, luck: np.ndarray, earned: np.ndarray) -> Iterator[Alike]:
    """Play a round of games that were alike, and part those that are no longer."""
    is_first = luck[alike.games] < game.pool[alike.opponent].first(alike.theirs, alike.mine)
    for move, reply in itertools.product(game.moves, repeat=2):
        mine = alike.games[(np.asarray(moves) == move) & (is_first if reply == game.moves[0] else ~is_first)]
        if len(mine):
            earned[mine] += game.payoff[move + reply]
            yield Alike(alike.opponent, alike.mine + move, alike.theirs + reply, mine)


def _of_every_game(decide: Callable[[Pasts], Sequence[str]], alike: Sequence[Alike]) -> list[np.ndarray]:
    """The moves of each bundle, asked for game by game in the order of their numbers."""
    pasts: list[tuple[str, str]] = [("", "")] * sum(len(each.games) for each in alike)
    for each in alike:
        for number in each.games:
            pasts[number] = (each.mine, each.theirs)
    moves = np.array(decide(pasts))
    return [moves[each.games] for each in alike]


def expected(game: Game, strategy: Strategy) -> float:
    """What a strategy without chance earns in a round on average, exactly."""

    def ahead(mine: str, theirs: str, weights: np.ndarray) -> float:
        if len(mine) == game.rounds:
            return 0.0
        move = strategy(mine, theirs)
        return sum(
            likely.sum() * game.payoff[move + reply] + ahead(mine + move, theirs + reply, likely)
            for reply, likely in replies_to(game, mine, theirs, weights)
        )

    return float(ahead("", "", game.weights)) / game.rounds


def best_response(game: Game) -> tuple[float, dict[str, str]]:
    """The most that can be earned in a round on average, and the move to make by what the opponent has done so far.

    One's own past need not be named: it follows from the same table.
    """

    def best(mine: str, theirs: str, weights: np.ndarray) -> tuple[float, dict[str, str]]:
        if len(mine) == game.rounds:
            return 0.0, {}
        branches = replies_to(game, mine, theirs, weights)
        worth: list[tuple[float, dict[str, str]]] = []
        for move in game.moves:
            value, moves = 0.0, {theirs: move}
            for reply, likely in branches:
                later, below = best(mine + move, theirs + reply, likely)
                value += float(likely.sum()) * game.payoff[move + reply] + later
                moves |= below
            worth.append((value, moves))
        return max(worth, key=lambda pair: pair[0])

    value, plan = best("", "", game.weights)
    return value / game.rounds, plan


def replies_to(game: Game, mine: str, theirs: str, weights: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The opponent's possible next moves, with how likely each opponent comes to make them."""
    first = game.chances(mine, theirs)
    likely = zip(game.moves, (weights * first, weights * (1 - first)), strict=True)
    return [(reply, weight) for reply, weight in likely if weight.any()]


def from_table(game: Game, table: str) -> Strategy:
    """The strategy of five letters: the first move, then those after a last round of aa, ab, ba and bb, mine first."""
    answers = dict(zip(("", *map("".join, itertools.product(game.moves, repeat=2))), table, strict=True))
    return lambda mine, theirs: answers[mine[-1:] + theirs[-1:]]


def tables(game: Game) -> Iterator[str]:
    """Every table of five letters."""
    return map("".join, itertools.product(game.moves, repeat=5))
