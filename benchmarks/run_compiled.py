"""Trains PPO on CartPole as one compiled program with PureJaxRL (a checkout) or rejax; needs no Operant.

Both compile the environment too, so they stand beside Operant's jax engine with its own compiled CartPole. They are
compiled before the clock starts. Both clip the value's loss, which the other libraries do not here. rejax keeps its
learning rate constant, and one evaluation of 128 episodes is within its clock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from benchmarks.clock import limit_xla, timed
from benchmarks.matched import CELLS
from benchmarks.same_episodes import KINDS, peer_return

UNUSED = ("brax", "brax.envs", "brax.envs.wrappers", "brax.envs.wrappers.training", "navix")
"""What PureJaxRL's wrappers import for other environments."""


def run_purejaxrl(name: str, seed: int, steps: int, episodes: int, checkout: Path) -> dict[str, Any]:
    """PureJaxRL's `ppo.py`."""
    limit_xla()
    import jax

    sys.path.insert(0, str(checkout.resolve() / "purejaxrl"))
    sys.modules |= {module: MagicMock() for module in UNUSED}
    import ppo  # pyright: ignore[reportMissingImports]

    settings = {
        "LR": 2.5e-4,
        "NUM_ENVS": CELLS[name].envs,
        "NUM_STEPS": 128,
        "TOTAL_TIMESTEPS": steps,
        "UPDATE_EPOCHS": 4,
        "NUM_MINIBATCHES": 4,
        "GAMMA": 0.99,
        "GAE_LAMBDA": 0.95,
        "CLIP_EPS": 0.2,
        "ENT_COEF": 0.01,
        "VF_COEF": 0.5,
        "MAX_GRAD_NORM": 0.5,
        "ACTIVATION": "tanh",
        "ENV_NAME": CELLS[name].env,
        "ANNEAL_LR": True,
    }
    clock, ended = _trained(ppo.make_train(settings), seed)
    state = ended["runner_state"][0]
    policy = jax.jit(lambda seen: state.apply_fn(state.params, seen)[0].logits)
    return {"steps": steps, **clock, **_returns(policy, name, episodes)}


def run_rejax(name: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """rejax's PPO."""
    limit_xla()
    import jax
    import rejax  # pyright: ignore[reportMissingImports]

    algorithm = rejax.PPO.create(
        env=CELLS[name].env,
        num_envs=CELLS[name].envs,
        num_steps=128,
        num_epochs=4,
        num_minibatches=4,
        learning_rate=2.5e-4,
        max_grad_norm=0.5,
        ent_coef=0.01,
        total_timesteps=steps,
        eval_freq=steps,
        skip_initial_evaluation=True,
        agent_kwargs={"activation": "tanh"},
    )
    clock, (state, _) = _trained(lambda key: algorithm.train(key), seed)
    actor = state.actor_ts
    policy = jax.jit(lambda seen: algorithm.actor.apply(actor.params, seen[None], method="_action_dist").logits[0])
    return {"steps": steps, **clock, **_returns(policy, name, episodes)}


def _trained(train: Callable[[Any], Any], seed: int) -> tuple[dict[str, float], Any]:
    """The seconds of the compiled program, and what it returns."""
    import jax

    key, ended = jax.random.PRNGKey(seed), []
    program = jax.jit(train).lower(key).compile()
    return timed(lambda: ended.append(jax.block_until_ready(program(key)))), ended[0]


def _returns(policy: Callable[[Any], Any], name: str, episodes: int) -> dict[str, float]:
    """Judged as all are: on Gymnasium's environment."""
    import gymnasium as gym
    import numpy as np

    random = np.random.default_rng(0)

    def act(seen: Any, greedy: bool) -> int:
        logits = np.asarray(policy(seen))
        return int(np.argmax(logits if greedy else logits + random.gumbel(size=logits.shape)))

    world = gym.make(CELLS[name].env)
    return {kind: peer_return(world, partial(act, greedy=greedy), episodes) for kind, greedy in KINDS.items()}
