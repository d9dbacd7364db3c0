"""A checkpoint's policy in a window or a video file: in Gymnasium's form of the environment, which can be drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from operant.engines.jax.evaluation import load_policy
from operant.engines.jax.learner import GREEDY, PolicyInput
from operant.envs.functional.find import in_gymnasium
from operant.envs.watch import Decide, Decision, watch_policy
from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.spec.stored import stored


def record_video(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Greedy episodes on the seeds from `seed` on, rendered to `sink`."""
    trained, seeds = stored(run.spec), range(seed, seed + episodes)
    env = in_gymnasium(trained.env)
    if env.name != trained.env.name:
        print(f"MJX draws nothing: {trained.env.name} is played in Gymnasium's {env.name}", flush=True)
    # Gymnasium's environment has the same spaces, so that the policy can be read without MJX.
    is_read_there = trained.agent.algorithm.learner("jax").ON_HOST
    spec = trained.model_copy(update={"env": env}) if is_read_there else trained
    return watch_policy(env, lambda: greedy(spec, checkpoint.path), seeds, sink, checkpoint.at)


def greedy(spec: Spec, checkpoint: Path) -> Decide:
    """The checkpoint's best actions, and the probabilities of all and the value where its algorithm has them."""
    learner, policy = load_policy(spec, checkpoint)
    hyper, hidden = learner.hyper(spec), learner.init_hidden(1)

    @jax.jit
    def predict(seen: PolicyInput) -> tuple[jax.Array, Any, Any]:
        action, after = learner.act_and_hidden(policy, hyper, seen, jax.random.key(0), jnp.int32(GREEDY))
        return action, after, learner.probs_and_value(policy, seen.observation, seen.mask)

    def decide(observation: np.ndarray, mask: np.ndarray | None, begins: np.ndarray) -> Decision:
        nonlocal hidden
        shown = observation.reshape(1, *learner.env.observation_shape)
        action, hidden, predicted = predict(PolicyInput(shown, mask, None if hidden is None else begins, hidden))
        probabilities, value = (None, None) if predicted is None else (np.asarray(part)[0] for part in predicted)
        return Decision(np.asarray(action), probabilities, value)

    return decide
