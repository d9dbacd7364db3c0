"""Trains PPO with rlox, whose environments, buffers and advantages are Rust and whose networks are torch's."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.clock import THREADS, timed
from benchmarks.matched import CELLS
from benchmarks.same_episodes import KINDS, peer_return


def run_rlox(name: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """Through its public interface; CartPole is its own, in Rust, and is judged on Gymnasium's as all are."""
    import gymnasium as gym
    import torch
    from rlox.algorithms.ppo import PPO  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(int(THREADS))
    torch.manual_seed(seed)
    model = PPO(CELLS[name].env, n_envs=CELLS[name].envs, seed=seed, n_steps=128, batch_size=128, clip_vloss=False)
    clock = timed(lambda: model.train(steps))

    def act(seen: Any, greedy: bool) -> int:
        return int(model.predict(seen, deterministic=greedy))

    world = gym.make(CELLS[name].env)
    returns = {kind: peer_return(world, partial(act, greedy=greedy), episodes) for kind, greedy in KINDS.items()}
    return {"steps": steps, **clock, **returns}
