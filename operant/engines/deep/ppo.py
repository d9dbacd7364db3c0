"""Proximal policy optimisation (Schulman et al., 2017), read top to bottom.

collect: play `time_horizon` steps in every environment with the current policy.
update:  estimate advantages, then a few epochs of clipped policy and value gradients.

Acting needs only the policy head; values and log-probabilities of a whole rollout are computed
afterwards in one batch, with the very weights that acted, so the first ratio is exactly 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from operant.engines.deep import codec, losses
from operant.engines.deep.actor import Actor
from operant.engines.deep.arithmetic import Arithmetic
from operant.engines.deep.nets import ActorCritic, forward_for_acting
from operant.engines.deep.normalise import ObservationNormaliser, RewardNormaliser
from operant.engines.deep.optimise import FlatOptimiser
from operant.engines.deep.policies import Categorical, DiagonalGaussian, Distribution
from operant.engines.deep.returns import gae
from operant.engines.deep.tracker import Tracker
from operant.envs.gym import ActionMap, Ended, VectorEnv
from operant.run.seeding import Seeds
from operant.spec.algorithms import PpoSpec
from operant.spec.fields import value_at
from operant.spec.schema import Spec


@dataclass(frozen=True)
class Rollout:
    """Steps [T, N, ...] as they were played; `final_obs` holds the last observations of ended episodes."""

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    last_obs: np.ndarray
    final_obs: dict[tuple[int, int], np.ndarray]
    ended: list[Ended]


@dataclass(frozen=True)
class Samples:
    """One rollout as flat tensors [T * N, ...], ready for minibatches."""

    obs: Tensor
    action: Tensor
    logp: Tensor
    value: Tensor
    advantage: Tensor
    target: Tensor

    def take(self, index: Tensor) -> Samples:
        """The samples at `index`."""
        return Samples(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def part(self, start: int, end: int) -> Samples:
        """The samples from `start` to `end`, without copying."""
        return Samples(*(getattr(self, name)[start:end] for name in self.__dataclass_fields__))


class Ppo:
    """The learner: environments, network, optimiser and everything that must survive a restart."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, PpoSpec)
        self.spec = spec
        self.algorithm = spec.agent.algorithm
        self.device = device
        self.tracker = Tracker()
        self.vector = VectorEnv(spec.env, spec.env.num_envs, lambda i, k: seeds.integer("env", i, k))
        torch.manual_seed(seeds.integer("init"))
        self.net = build_net(spec, self.vector.obs_shape, self.vector.actions).to(device)
        optimizer = spec.agent.net.optimizer
        rates = (optimizer.lr, optimizer.critic_lr or optimizer.lr)
        self.optimiser = FlatOptimiser(optimizer, self.net.parameter_groups(), rates)
        self.actor = build_actor(spec, self.net, self.vector.obs_shape, self.vector.actions)
        self.distribution = distribution_for(self.vector.actions)
        self.rewards = RewardNormaliser(
            spec.env.num_envs, spec.env.normalize_reward, self.algorithm.gamma, spec.env.clip_reward
        )
        self.rng_act = seeds.rng("act")
        self.rng_shuffle = seeds.rng("shuffle")
        self.snapshot = codec.Snapshot(
            policy={"net": codec.Weights(self.net), "obs": self.actor.normaliser},
            learner={"optimiser": self.optimiser, "env": self.vector, "reward": self.rewards},
            tracker=self.tracker,
            streams={"act": self.rng_act, "shuffle": self.rng_shuffle},
        )

    def iterate(self) -> list[Ended]:
        """One rollout and the update that it pays for."""
        rollout = self.collect()
        self.tracker.frames += rollout.reward.size
        self.tracker.add(self.update(rollout))
        for over in rollout.ended:
            self.tracker.ended(over.score, over.length)
        return rollout.ended

    def collect(self) -> Rollout:
        """Play `time_horizon` steps in every environment."""
        steps, num = self.algorithm.time_horizon, self.vector.num
        obs = np.empty((steps, num, *self.vector.obs_shape), np.float32)
        reward = np.empty((steps, num), np.float32)
        terminated, truncated = np.empty((steps, num), bool), np.empty((steps, num), bool)
        noise = self.actor.policy.noise(self.rng_act, (steps, num))
        action: list[np.ndarray] = []
        final_obs: dict[tuple[int, int], np.ndarray] = {}
        ended: list[Ended] = []
        for t in range(steps):
            obs[t] = self._see(self.vector.obs)
            action.append(self.actor.draw(obs[t], noise[t]))
            step = self.vector.step(action[t])
            reward[t] = self.rewards(step.reward, step.terminated | step.truncated)
            terminated[t], truncated[t] = step.terminated, step.truncated
            for over in step.ended:
                final_obs[t, over.index] = step.next_obs[over.index]
            ended += step.ended
        last_obs = self.actor.normaliser(self.vector.obs)
        return Rollout(obs, np.stack(action), reward, terminated, truncated, last_obs, final_obs, ended)

    def _see(self, obs: np.ndarray) -> np.ndarray:
        self.actor.normaliser.learn(obs)
        return self.actor.normaliser(obs)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Several epochs of minibatches over the rollout; returns what to log, averaged over minibatches."""
        settings, frame = self.algorithm, self.tracker.frames
        clip, entropy_coef = value_at(settings.clip_eps, frame), value_at(settings.entropy_coef, frame)
        lr = self.optimiser.anneal(frame / self.spec.env.max_frame)
        samples = self.samples(rollout)
        reports: list[Tensor] = []
        for _ in range(settings.training_epoch):
            shuffled = samples.take(torch.from_numpy(self.rng_shuffle.permutation(len(samples.logp))).to(self.device))
            for start in range(0, len(samples.logp), settings.minibatch_size):
                batch = shuffled.part(start, start + settings.minibatch_size)
                reports.append(self.gradient_step(batch, clip, entropy_coef))
            if settings.target_kl is not None and float(reports[-1][3]) > settings.target_kl:
                break
        names = ("loss/policy", "loss/value", "policy/entropy", "policy/kl", "policy/clip_fraction", "optim/grad_norm")
        means = torch.stack(reports).mean(0).tolist()
        return dict(zip(names, means, strict=True)) | {"optim/lr": lr}

    def gradient_step(self, batch: Samples, clip: float, entropy_coef: float) -> Tensor:
        """Descend policy loss + value loss - entropy bonus on one minibatch."""
        output, value = self.net(batch.obs)
        logp, entropy = self.distribution.log_prob_and_entropy(output, batch.action, self.net.log_std)
        advantage = losses.standardise(batch.advantage) if self.algorithm.normalize_advantages else batch.advantage
        policy_loss = losses.clipped_surrogate(logp, batch.logp, advantage, clip)
        if self.algorithm.clip_vloss is None:
            value_loss = losses.value_loss(value, batch.target)
        else:
            value_loss = losses.clipped_value_loss(value, batch.value, batch.target, self.algorithm.clip_vloss)
        bonus = entropy.mean()
        norm = self.optimiser.step(policy_loss + self.algorithm.val_loss_coef * value_loss - entropy_coef * bonus)
        self.tracker.updates += 1
        with torch.no_grad():
            kl = losses.approximate_kl(logp, batch.logp)
            clipped = losses.clip_fraction(logp, batch.logp, clip)
            return torch.stack((policy_loss, value_loss, bonus, kl, clipped, norm))

    @torch.no_grad()
    def samples(self, rollout: Rollout) -> Samples:
        """Log-probabilities, values, advantages and value targets of a rollout, in one pass."""
        steps, num = rollout.reward.shape
        obs = self._tensor(rollout.obs).flatten(0, 1)
        action = self._tensor(rollout.action).flatten(0, 1)
        output, flat_value = self.net(obs)
        logp, _ = self.distribution.log_prob_and_entropy(output, action, self.net.log_std)
        value = flat_value.cpu().numpy().reshape(steps, num)
        settings = self.algorithm
        ahead, ends = self._next_values(rollout, value), (rollout.terminated, rollout.truncated)
        advantage = gae(rollout.reward, value, ahead, *ends, settings.gamma, settings.lam)
        target = advantage + value
        return Samples(obs, action, logp, flat_value, self._tensor(advantage).flatten(), self._tensor(target).flatten())

    def _next_values(self, rollout: Rollout, value: np.ndarray) -> np.ndarray:
        """The value of each step's true successor; where an episode was cut short, of its final observation."""
        cut = [at for at in rollout.final_obs if rollout.truncated[at]]
        finals = [self.actor.normaliser(rollout.final_obs[at][None]) for at in cut]
        ahead = self.net.value(self._tensor(np.concatenate([rollout.last_obs, *finals]))).cpu().numpy()
        next_value = np.concatenate([value[1:], ahead[None, : self.vector.num]])
        for at, final in zip(cut, ahead[self.vector.num :], strict=True):
            next_value[at] = final
        return next_value

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def arithmetic(self) -> Arithmetic:
        """How frames become updates, and updates gradient steps."""
        settings, envs = self.algorithm, self.spec.env.num_envs
        batch = envs * settings.time_horizon
        rollouts = -(-self.spec.env.max_frame // batch)
        minibatches = batch // settings.minibatch_size
        each = settings.training_epoch * minibatches
        lines = [
            f"{rollouts:,} updates x {batch:,} samples ({envs} envs x {settings.time_horizon} steps)"
            f" = {rollouts * batch:,} frames",
            f"each update: {settings.training_epoch} epochs x {minibatches} minibatches of {settings.minibatch_size}"
            f" = {each} gradient steps, {rollouts * each:,} in all",
        ]
        return Arithmetic(lines, updates=rollouts * each)


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> ActorCritic:
    """A fresh network for these observations and actions."""
    return ActorCritic(spec.agent.net, int(np.prod(obs_shape)), actions.size, actions.discrete)


def build_actor(spec: Spec, net: ActorCritic, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`, seeing its weights as they are at each call."""
    normaliser = ObservationNormaliser(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    return Actor(forward_for_acting(net.policy_layers()), normaliser, distribution_for(actions), net.log_std)


def distribution_for(actions: ActionMap) -> Distribution:
    """The distribution that fits an action space."""
    return Categorical(actions.size) if actions.discrete else DiagonalGaussian(actions.size)
