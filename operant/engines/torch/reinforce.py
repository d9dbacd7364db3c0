"""REINFORCE (Williams, 1992): the policy gradient from the returns of whole episodes, without a critic.

Each update plays `training_frequency` episodes from start to end with one policy, the same number in every
environment, and may learn from the best of them only, by the cross-entropy method (Rubinstein, 1999). With a
`time_horizon` it plays so many steps of each environment instead, and what an episode earns after them is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.actor import Actor
from operant.engines.torch.advantages import monte_carlo_returns
from operant.engines.torch.checkpoint import Snapshot, Weights
from operant.engines.torch.networks.acting import forward_for_acting
from operant.engines.torch.networks.heads import PolicyNet
from operant.engines.torch.normalize import ObservationNormalizer, RewardNormalizer
from operant.engines.torch.on_policy import distribution_for
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.rollout import collect, collect_episodes
from operant.engines.torch.tracker import Tracker
from operant.engines.torch.update_counts import UpdateCounts, episode_update_counts, rollout_update_counts
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.envs.vector.episode_seeds import episode_seeds
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.on_policy import ReinforceSpec


@dataclass(frozen=True)
class Episodes:
    """The steps to learn from [S, ...], and the return from each on; `mask` is what was legal.

    `ended` and `frames` are of all that was played, of which the best episodes may have been chosen.
    """

    obs: np.ndarray
    action: np.ndarray
    returns: np.ndarray
    ended: list[Ended]
    frames: int
    mask: np.ndarray | None = None


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> PolicyNet:
    """A fresh network for these observations and actions."""
    return PolicyNet(spec.agent.net, obs_shape, actions.size, actions.discrete)


def build_actor(spec: Spec, net: PolicyNet, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`, seeing its weights as they are at each call."""
    normalizer = ObservationNormalizer(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    return Actor(forward_for_acting(net.layers), normalizer, distribution_for(actions), net.log_std)


class Reinforce:
    """The learner: environments, policy, optimizer and everything that must survive a restart."""

    ENGINE = "torch"
    build_net = staticmethod(build_net)
    build_actor = staticmethod(build_actor)

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, ReinforceSpec)
        self.spec = spec
        self.algorithm = spec.agent.algorithm
        self.device = device
        self.tracker = Tracker()
        self.vector = AutoresetVectorEnv(spec.env, spec.env.num_envs, episode_seeds(spec, seeds))
        torch.manual_seed(seeds.integer("init"))
        self.net = self.build_net(spec, self.vector.obs_shape, self.vector.actions).to(device)
        optimizer = spec.agent.net.optimizer
        self.optimizer = FlatOptimizer(optimizer, [list(self.net.parameters())], [optimizer.lr])
        self.actor = self.build_actor(spec, self.net, self.vector.obs_shape, self.vector.actions)
        self.distribution = distribution_for(self.vector.actions)
        self.rewards = RewardNormalizer(spec.env.num_envs, False, self.algorithm.gamma, spec.env.clip_reward)
        self.rng_act = seeds.rng("act")
        self.snapshot = Snapshot(
            policy={"net": Weights(self.net), "obs": self.actor.obs_normalizer},
            learner={"optimiser": self.optimizer, "env": self.vector},
            tracker=self.tracker,
            streams={"act": self.rng_act},
        )

    def iterate(self) -> list[Ended]:
        """A batch of episodes and the gradient step that it pays for."""
        episodes = self.play()
        self.tracker.frames += episodes.frames
        self.tracker.add(self.update(episodes))
        for over in episodes.ended:
            self.tracker.ended(over.score, over.length)
        return episodes.ended

    def play(self) -> Episodes:
        """`training_frequency` episodes, shared equally among the environments; or `time_horizon` steps of each."""
        settings, players = self.algorithm, (self.vector, self.actor, self.rewards, self.rng_act)
        if settings.time_horizon is None:
            rollout = collect_episodes(*players, settings.training_frequency)
        else:
            rollout = collect(*players, settings.time_horizon)
        over = rollout.terminated | rollout.truncated
        returns = monte_carlo_returns(rollout.reward, over, settings.gamma)
        kept = elite_steps(rollout.reward, over, settings.elite_fraction)
        legal = None if rollout.mask is None else rollout.mask[kept]
        played = rollout.reward.size
        return Episodes(rollout.obs[kept], rollout.action[kept], returns[kept], rollout.ended, played, legal)

    def update(self, episodes: Episodes) -> dict[str, float]:
        """One descent of policy loss - entropy bonus over all steps of the episodes."""
        frame = self.tracker.frames
        lr = self.optimizer.anneal(frame / self.spec.env.max_frame)
        output = self.net(self._tensor(episodes.obs))
        action = self._tensor(episodes.action)
        mask = None if episodes.mask is None else self._tensor(episodes.mask)
        logp, entropy = self.distribution.log_prob_and_entropy(output, action, self.net.log_std, mask)
        loss = losses.policy_gradient_loss(logp, self.weights(self._tensor(episodes.returns)))
        bonus = entropy.mean()
        norm = self.optimizer.step(loss - value_at(self.algorithm.entropy_coef, frame) * bonus)
        self.tracker.updates += 1
        names = ("loss/policy", "policy/entropy", "optim/grad_norm")
        return dict(zip(names, torch.stack((loss, bonus, norm)).tolist(), strict=True)) | {"optim/lr": lr}

    def weights(self, returns: Tensor) -> Tensor:
        """What multiplies each log-probability: the returns, less their mean or also over their deviation."""
        if self.algorithm.normalize_returns == "standardise":
            return losses.standardize(returns)
        return returns - returns.mean() if self.algorithm.normalize_returns == "centre" else returns

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def update_counts(self) -> UpdateCounts:
        """How episodes become updates; how many frames those are is known once some were played."""
        settings = self.algorithm
        if settings.time_horizon is not None:
            return rollout_update_counts(self.spec, settings.time_horizon)
        return episode_update_counts(self.spec, self.tracker, settings.training_frequency)


def elite_steps(reward: np.ndarray, over: np.ndarray, fraction: float) -> np.ndarray:
    """Which steps [S, 1] of whole episodes are of the best `fraction` of them, by their sums of rewards.

    These are the episodes not below the quantile 1 - fraction of all sums, so equal ones are kept or left together.
    """
    if fraction == 1:
        return np.ones(reward.shape, bool)
    ends = np.flatnonzero(over)
    episode = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
    total = np.bincount(episode, reward[:, 0].astype(np.float64))
    return (total >= np.quantile(total, 1 - fraction))[episode, None]
