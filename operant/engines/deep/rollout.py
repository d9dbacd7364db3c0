"""Play recorded as arrays [T, N, ...]: what on-policy algorithms collect before they learn from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from operant.engines.deep.actor import Actor
from operant.engines.deep.normalise import RewardNormaliser
from operant.envs.gym import Ended, VectorEnv


@dataclass(frozen=True)
class Rollout:
    """Steps as they were played; `final_obs` holds the last observations of ended episodes.

    Observations are normalised by the statistics of their moment, all but `final_obs`, which few
    algorithms need. `mask` is what was legal at each step and `final_mask` in final observations,
    where the environment says so and the algorithm asks.
    """

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    last_obs: np.ndarray
    final_obs: dict[tuple[int, int], np.ndarray]
    ended: list[Ended]
    mask: np.ndarray | None = None
    final_mask: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)


def collect(
    vector: VectorEnv, actor: Actor, rewards: RewardNormaliser, rng: np.random.Generator, steps: int
) -> Rollout:
    """Play `steps` steps in every environment, learning only the scales of observations and rewards."""
    num = vector.num
    # Images stay bytes here: a quarter of the memory, and the network scales them itself.
    obs = np.empty((steps, num, *vector.obs_shape), actor.normaliser(vector.obs).dtype)
    reward = np.empty((steps, num), np.float32)
    terminated, truncated = np.empty((steps, num), bool), np.empty((steps, num), bool)
    action: list[np.ndarray] = []
    mask: list[np.ndarray] = []
    final_obs: dict[tuple[int, int], np.ndarray] = {}
    ended: list[Ended] = []
    noise = actor.policy.noise(rng, (steps, num))
    for t in range(steps):
        actor.normaliser.learn(vector.obs)
        obs[t] = actor.normaliser(vector.obs)
        if vector.mask is not None:
            mask.append(vector.mask)
        action.append(actor.draw(obs[t], noise[t], vector.mask))
        step = vector.step(action[t])
        reward[t] = rewards(step.reward, step.terminated | step.truncated)
        terminated[t], truncated[t] = step.terminated, step.truncated
        for over in step.ended:
            final_obs[t, over.index] = step.next_obs[over.index]
        ended += step.ended
    last_obs = actor.normaliser(vector.obs)
    legal = np.stack(mask) if mask else None
    return Rollout(obs, np.stack(action), reward, terminated, truncated, last_obs, final_obs, ended, legal)


def next_values(
    rollout: Rollout, value: np.ndarray, value_of: Callable[[np.ndarray], np.ndarray], actor: Actor
) -> np.ndarray:
    """The value of each step's true successor; where an episode was cut short, of its final observation.

    `value` [T, N] are the values of `rollout.obs`; `value_of` gives those of further observations.
    """
    cut = [at for at in rollout.final_obs if rollout.truncated[at]]
    finals = [actor.normaliser(rollout.final_obs[at][None]) for at in cut]
    ahead = value_of(np.concatenate([rollout.last_obs, *finals]))
    num = len(rollout.last_obs)
    successor = np.concatenate([value[1:], ahead[None, :num]])
    for at, final in zip(cut, ahead[num:], strict=True):
        successor[at] = final
    return successor
