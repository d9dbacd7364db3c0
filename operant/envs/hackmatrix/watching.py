"""A policy at play in HackMatrix, kept as replays: what it saw, what it thought and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from operant.envs.hackmatrix.replay import GAME, Replay
from operant.envs.hackmatrix.show import show

TERMINAL = "terminal"


@dataclass(frozen=True)
class Decision:
    """An action, and what the policy thought of all of them where it can tell."""

    action: int
    probabilities: Any = None
    value: Any = None


@dataclass(frozen=True)
class Game:
    """One game to its end."""

    replay: Replay
    score: float
    terminated: bool


Decide = Callable[[np.ndarray, np.ndarray], Decision]
"""From an observation [1, ...] and what is legal [1, 28] to a decision."""


def is_replayed(env: str, sink: str | Path) -> bool:
    """Whether this sink is shown by replaying games, with the policy's thoughts beside the board."""
    return env == GAME and (sink == TERMINAL or isinstance(sink, Path))


def watch_games(env: gym.Env, decide: Decide, seeds: Iterable[int], sink: str | Path) -> list[Game]:
    """Play one game for each seed, then show them all: in the terminal, as a film or as a page."""
    games = [play_game(env, decide, seed) for seed in seeds]
    if isinstance(sink, Path):
        sink.parent.mkdir(parents=True, exist_ok=True)
    show([game.replay for game in games], sink if isinstance(sink, Path) else None)
    return games


def play_game(env: gym.Env, decide: Decide, seed: int) -> Game:
    """One game by the policy's decisions."""
    obs, info = env.reset(seed=seed)
    decisions: list[Decision] = []
    score, over = 0.0, False
    terminated = False
    while not over:
        decisions.append(decide(np.asarray(obs, np.float32)[None], np.asarray(info["action_mask"], bool)[None]))
        obs, reward, terminated, truncated, info = env.step(decisions[-1].action)
        score, over = score + float(reward), terminated or truncated
    return Game(_replay(seed, decisions), score, bool(terminated))


def _replay(seed: int, decisions: list[Decision]) -> Replay:
    columns = {
        "probabilities": [each.probabilities for each in decisions],
        "values": [each.value for each in decisions],
    }
    told = {name: rows for name, rows in columns.items() if all(row is not None for row in rows)}
    return Replay.of(seed, [each.action for each in decisions], **told)
