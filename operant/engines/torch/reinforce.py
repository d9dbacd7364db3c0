"""REINFORCE (Williams, 1992): the policy gradient from the returns of whole episodes, without a critic.

Each update plays `training_frequency` episodes from start to end with one policy, the same number
in every environment; one that has played its share waits for the others. So no return is cut, no
action is of an older policy, and long episodes are as likely to count as short ones.
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
from operant.engines.torch.episode_seeds import episode_seeds
from operant.engines.torch.networks.acting import forward_for_acting
from operant.engines.torch.networks.heads import PolicyNet
from operant.engines.torch.normalize import ObservationNormalizer, RewardNormalizer
from operant.engines.torch.on_policy import distribution_for
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.tracker import Tracker
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.on_policy import ReinforceSpec


@dataclass(frozen=True)
class Episodes:
    """Whole episodes as steps [S, ...], and the return from each step on; `mask` is what was legal."""

    obs: np.ndarray
    action: np.ndarray
    returns: np.ndarray
    ended: list[Ended]
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
        self.tracker.frames += len(episodes.returns)
        self.tracker.add(self.update(episodes))
        for over in episodes.ended:
            self.tracker.ended(over.score, over.length)
        return episodes.ended

    def play(self) -> Episodes:
        """`training_frequency` episodes, shared equally among the environments."""
        vector, actor = self.vector, self.actor
        owed = np.full(vector.num, self.algorithm.training_frequency // vector.num)
        steps: list[tuple[np.ndarray, ...]] = []
        ended: list[Ended] = []
        masks: list[np.ndarray] = []
        while owed.any():
            playing = owed > 0
            actor.obs_normalizer.update(vector.obs[playing])
            obs = actor.obs_normalizer(vector.obs)
            if vector.mask is not None:
                masks.append(vector.mask)
            action = actor.draw(obs, actor.policy.noise(self.rng_act, (vector.num,)), vector.mask)
            step = vector.step(action, playing)
            over = step.terminated | step.truncated
            steps.append((obs, action, self.rewards.scaled(step.reward), over, playing))
            owed -= over
            ended += step.ended
        obs, action, reward, over, played = (np.stack(column) for column in zip(*steps, strict=True))
        returns = monte_carlo_returns(reward, over, self.algorithm.gamma)
        legal = np.stack(masks)[played] if masks else None
        return Episodes(obs[played], action[played], returns[played], ended, legal)

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
        envs, episodes = self.spec.env.num_envs, self.algorithm.training_frequency
        each = f"{episodes} whole episodes ({envs} envs x {episodes // envs})"
        frames, done = self.tracker.frames, self.tracker.updates
        updates = self.spec.env.max_frame * done // frames if frames else 0
        line = f"each update: {each}, one gradient step; about {updates:,} updates if episodes stay as long as at first"
        return UpdateCounts([line], updates=updates)
