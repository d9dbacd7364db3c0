"""A policy at play before a person's eyes: in Gymnasium's form of the problem, which can be drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from operant.engines.fused.actor import load_policy
from operant.engines.fused.learner import GREEDY
from operant.engines.fused.loop import as_episode
from operant.engines.fused.playing import Ended
from operant.envs.film import WINDOW, drawing_env, write_film
from operant.envs.gym import ActionMap, make_env
from operant.envs.hackmatrix.watching import Decide, Decision, is_replayed, watch_games
from operant.envs.worlds import MaskReader
from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode
from operant.run.run import Run
from operant.spec.schema import Spec

Act = Callable[[np.ndarray, np.ndarray | None], np.ndarray]


def show(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Play greedily; frames go to the window, or to the file `sink`."""
    spec = Spec.model_validate(run.spec)
    if is_replayed(spec.env.name, sink):
        return replay_games(spec, checkpoint, range(seed, seed + episodes), sink)
    env = drawing_env(spec.env, sink)
    frames: list[np.ndarray] | None = None if sink == WINDOW else []
    act = greedy(spec, checkpoint.path)
    played = [play_one(env, act, seed + k, frames) for k in range(episodes)]
    env.close()
    if frames is not None:
        write_film(Path(sink), frames, env)
    media = None if frames is None else str(sink)
    return [as_episode(over, spec.env.name, "watch", checkpoint.at, media) for over in played]


def replay_games(spec: Spec, checkpoint: Checkpoint, seeds: range, sink: str | Path) -> list[Episode]:
    """Games of HackMatrix with the policy's thoughts beside the board."""
    games = watch_games(make_env(spec.env), deciding(spec, checkpoint.path), seeds, sink)
    played = [Ended(game.replay.seed, game.score, len(game.replay.actions), game.terminated) for game in games]
    media = str(sink) if isinstance(sink, Path) else None
    return [as_episode(over, spec.env.name, "watch", checkpoint.at, media) for over in played]


def deciding(spec: Spec, checkpoint: Path) -> Decide:
    """The checkpoint's greedy policy, telling what it thinks where its algorithm can."""
    learner, policy = load_policy(spec, checkpoint)

    @jax.jit
    def think(seen: jax.Array, mask: jax.Array) -> tuple[jax.Array, Any]:
        action = learner.act(policy, seen, mask, jax.random.key(0), jnp.int32(GREEDY))
        return action[0], learner.think(policy, seen, mask)

    def decide(seen: np.ndarray, mask: np.ndarray) -> Decision:
        action, thought = think(seen.reshape(1, -1), mask)
        probabilities, value = (None, None) if thought is None else (np.asarray(part)[0] for part in thought)
        return Decision(int(action), probabilities, value)

    return decide


def greedy(spec: Spec, checkpoint: Path) -> Act:
    """The checkpoint's policy as a function of observations and masks."""
    learner, policy = load_policy(spec, checkpoint)
    act = jax.jit(lambda seen, mask: learner.act(policy, seen, mask, jax.random.key(0), jnp.int32(GREEDY)))
    return lambda seen, mask: np.asarray(act(seen, mask))


def play_one(env: gym.Env, act: Act, seed: int, frames: list[np.ndarray] | None) -> Ended:
    """One greedy episode; its pictures are added to `frames`."""
    actions, masks = ActionMap(env.action_space), MaskReader([env])
    obs, info = env.reset(seed=seed)
    score, length = 0.0, 0
    while True:
        if frames is not None:
            frames.append(np.asarray(env.render()))
        mask = masks.one(0, info)
        action = act(np.asarray(obs, np.float32).reshape(1, -1), None if mask is None else mask[None])
        obs, reward, terminated, truncated, info = env.step(actions.to_env(action)[0])
        score, length = score + float(reward), length + 1
        if terminated or truncated:
            return Ended(seed, score, length, bool(terminated))
