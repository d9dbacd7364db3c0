"""A policy at play before a person's eyes: in a window, as a film, or as replays where the problem has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from operant.envs.film import WINDOW, drawing_env, write_film
from operant.envs.gym import ActionMap, make_env
from operant.envs.hackmatrix.viewer.show import is_replayed, show_games
from operant.envs.worlds import MaskReader
from operant.run.episode import Episode
from operant.run.progress import Progress

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec


@dataclass(frozen=True)
class Decision:
    """An action [1, ...], and what the policy thought of all of them where it can tell."""

    action: np.ndarray
    probabilities: Any = None
    value: Any = None


Decide = Callable[[np.ndarray, np.ndarray | None, np.ndarray], Decision]
"""From an observation [1, ...], what is legal, and whether the episode begins here [1], to a decision."""


@dataclass(frozen=True)
class Watched:
    """One episode to its end."""

    seed: int
    score: float
    terminated: bool
    decisions: list[Decision]


def watch_policy(
    env: EnvSpec, load: Callable[[], Decide], seeds: range, sink: str | Path, at: Progress
) -> list[Episode]:
    """Play one episode for each seed and show them all; `at` is where the policy was in its training.

    The policy is loaded only once it is known that the problem can be shown as asked.
    """
    replayed = is_replayed(env.name, sink)
    world = make_env(env) if replayed else drawing_env(env, sink)
    frames: list[np.ndarray] | None = None if replayed or sink == WINDOW else []
    decide = load()
    watched = [play_one(world, decide, seed, frames) for seed in seeds]
    world.close()
    if replayed:
        show_games([(each.seed, each.decisions) for each in watched], sink)
    elif frames is not None:
        write_film(Path(sink), frames, world)
    media = str(sink) if isinstance(sink, Path) else None
    return [_as_episode(each, env.name, at, media) for each in watched]


def play_one(env: gym.Env, decide: Decide, seed: int, frames: list[np.ndarray] | None) -> Watched:
    """One episode in a single world; its pictures are added to `frames`."""
    actions, masks = ActionMap(env.action_space), MaskReader([env])
    obs, info = env.reset(seed=seed)
    decisions: list[Decision] = []
    score = 0.0
    while True:
        if frames is not None:
            frames.append(np.asarray(env.render()))
        mask = masks.one(0, info)
        begins = np.array([not decisions])
        decisions.append(decide(np.asarray(obs, np.float32)[None], None if mask is None else mask[None], begins))
        obs, reward, terminated, truncated, info = env.step(actions.to_env(decisions[-1].action)[0])
        score += float(reward)
        if terminated or truncated:
            return Watched(seed, score, bool(terminated), decisions)


def _as_episode(watched: Watched, env: str, at: Progress, media: str | None) -> Episode:
    how = "terminated" if watched.terminated else "truncated"
    return Episode(env, "watch", watched.seed, at, watched.score, len(watched.decisions), how, media=media)
