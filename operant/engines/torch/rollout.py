"""Play recorded as arrays [T, N, ...]: what on-policy algorithms collect before they learn from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from operant.engines.torch.actor import Actor
from operant.engines.torch.nets import Judge
from operant.engines.torch.normalise import RewardNormaliser
from operant.engines.torch.recall import Recall
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended


@dataclass(frozen=True)
class Remembered:
    """What a network that remembers needs of a rollout beside its steps.

    `begun` [T, N] marks the first observations of episodes; `start` and `last` [N, M] are the
    memories before the first step and after the last one, and `final` those of ended episodes.
    """

    begun: np.ndarray
    start: np.ndarray
    last: np.ndarray
    final: dict[tuple[int, int], np.ndarray]


@dataclass(frozen=True)
class Rollout:
    """Steps as they were played; `final_obs` holds the last observations of ended episodes.

    Observations are normalised by the statistics of their moment, all but `final_obs`, which few
    algorithms need; rewards by those that include the whole rollout. `mask` is what was legal at
    each step and `final_mask` in final observations, where the environment says so and the algorithm
    asks. `judged` are the policy outputs [T, N, A] and values [T, N] of the network as it acted,
    where acting computes both.
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
    remembered: Remembered | None = None
    judged: tuple[np.ndarray, np.ndarray] | None = None


def collect(
    vector: AutoresetVectorEnv,
    actor: Actor,
    rewards: RewardNormaliser,
    rng: np.random.Generator,
    steps: int,
    judge: Judge | None = None,
) -> Rollout:
    """Play `steps` steps in every environment, learning only the scales of observations and rewards.

    With `judge` the actions come of its policy outputs, which are kept in `judged` beside its values.
    """
    num = vector.num
    # Images stay bytes here: a quarter of the memory, and the network scales them itself.
    obs = np.empty((steps, num, *vector.obs_shape), actor.normaliser(vector.obs).dtype)
    reward = np.empty((steps, num), np.float32)
    terminated, truncated = np.empty((steps, num), bool), np.empty((steps, num), bool)
    action: list[np.ndarray] = []
    mask: list[np.ndarray] = []
    judged: list[tuple[np.ndarray, np.ndarray]] = []
    final_obs: dict[tuple[int, int], np.ndarray] = {}
    ended: list[Ended] = []
    noise = actor.policy.noise(rng, (steps, num))
    diary = None if actor.recall is None else Diary(actor.recall, vector.begun)
    for t in range(steps):
        actor.normaliser.learn(vector.obs)
        obs[t] = actor.normaliser(vector.obs)
        if vector.mask is not None:
            mask.append(vector.mask)
        if judge is None:
            action.append(actor.draw(obs[t], noise[t], vector.mask, vector.begun))
        else:
            judged.append(judge(obs[t]))
            action.append(actor.pick(judged[t][0], noise[t], vector.mask))
        if diary is not None:
            diary.began.append(vector.begun)
        step = vector.step(action[t])
        rewards.learn(step.reward, step.terminated | step.truncated)
        reward[t], terminated[t], truncated[t] = step.reward, step.terminated, step.truncated
        for over in step.ended:
            final_obs[t, over.index] = step.next_obs[over.index]
            if diary is not None:
                diary.final[t, over.index] = diary.recall.memory[over.index]
        ended += step.ended
    return Rollout(
        obs,
        np.stack(action),
        rewards.scaled(reward),
        terminated,
        truncated,
        actor.normaliser(vector.obs),
        final_obs,
        ended,
        np.stack(mask) if mask else None,
        remembered=None if diary is None else diary.close(),
        judged=None if judge is None else (np.stack([o for o, _ in judged]), np.stack([v for _, v in judged])),
    )


class Diary:
    """Keeps what is remembered while a rollout is played."""

    def __init__(self, recall: Recall, begun: np.ndarray) -> None:
        recall.forget(begun)
        self.recall = recall
        self.began: list[np.ndarray] = []
        self.final: dict[tuple[int, int], np.ndarray] = {}
        self._start = recall.memory

    def close(self) -> Remembered:
        """All of it, once the last step is played."""
        return Remembered(np.stack(self.began), self._start, self.recall.memory, self.final)


def next_values(
    rollout: Rollout,
    value: np.ndarray,
    value_of: Callable[[np.ndarray, np.ndarray | None], np.ndarray],
    actor: Actor,
) -> np.ndarray:
    """The value of each step's true successor; where an episode was cut short, of its final observation.

    `value` [T, N] are the values of `rollout.obs`; `value_of` gives those of further observations,
    and is told what was remembered before each, where anything is.
    """
    cut = [at for at in rollout.final_obs if rollout.truncated[at]]
    finals = [actor.normaliser(rollout.final_obs[at][None]) for at in cut]
    before = None
    if rollout.remembered is not None:
        before = np.concatenate([rollout.remembered.last, *(rollout.remembered.final[at][None] for at in cut)])
    ahead = value_of(np.concatenate([rollout.last_obs, *finals]), before)
    num = len(rollout.last_obs)
    successor = np.concatenate([value[1:], ahead[None, :num]])
    for at, final in zip(cut, ahead[num:], strict=True):
        successor[at] = final
    return successor
