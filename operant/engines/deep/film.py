"""A policy at play: in a window where there is a screen, otherwise as a film."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np

from operant.engines.deep.actor import Actor
from operant.engines.deep.learners import load_actor
from operant.engines.deep.loop import as_episode
from operant.envs.film import WINDOW, drawing_env, write_film
from operant.envs.gym import ActionMap, Ended, make_env
from operant.envs.hackmatrix.watching import Decision, is_replayed, watch_games
from operant.envs.worlds import MaskReader
from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode
from operant.run.run import Run
from operant.spec.schema import Spec


def show(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Play greedily; frames go to the window, or to the file `sink`."""
    spec = Spec.model_validate(run.spec)
    if is_replayed(spec.env.name, sink):
        return replay_games(spec, checkpoint, range(seed, seed + episodes), sink)
    in_window = sink == WINDOW
    env = drawing_env(spec.env, sink)
    actor = load_actor(spec, checkpoint.path)
    frames: list[np.ndarray] = []
    played = [play_one(env, actor, seed + k, None if in_window else frames) for k in range(episodes)]
    env.close()
    if not in_window:
        write_film(Path(sink), frames, env)
    media = None if in_window else str(sink)
    return [as_episode(over, spec.env.name, "watch", checkpoint.at, media) for over in played]


def replay_games(spec: Spec, checkpoint: Checkpoint, seeds: range, sink: str | Path) -> list[Episode]:
    """Games of HackMatrix as replays."""
    act = load_actor(spec, checkpoint.path).player(seeds.start)

    def decide(seen: np.ndarray, mask: np.ndarray) -> Decision:
        return Decision(int(act(seen, mask, np.array([False]))[0]))

    games = watch_games(make_env(spec.env), decide, seeds, sink)
    played = [Ended(0, game.replay.seed, game.score, len(game.replay.actions), game.terminated) for game in games]
    media = str(sink) if isinstance(sink, Path) else None
    return [as_episode(over, spec.env.name, "watch", checkpoint.at, media) for over in played]


def play_one(env: gym.Env, actor: Actor, seed: int, frames: list[np.ndarray] | None) -> Ended:
    """One greedy episode in a single world; its pictures are added to `frames`."""
    actions = ActionMap(env.action_space)
    masks, act = MaskReader([env]), actor.player(seed)
    obs, info = env.reset(seed=seed)
    score, length = 0.0, 0
    while True:
        if frames is not None:
            frames.append(np.asarray(env.render()))
        mask = masks.one(0, info)
        seen = np.asarray(obs, np.float32)[None]
        action = act(seen, None if mask is None else mask[None], np.array([length == 0]))
        obs, reward, terminated, truncated, info = env.step(actions.to_env(action)[0])
        score, length = score + float(reward), length + 1
        if terminated or truncated:
            return Ended(0, seed, score, length, bool(terminated))
