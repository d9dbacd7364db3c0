"""Proximal policy optimisation (Schulman et al., 2017), read top to bottom.

Each update plays `time_horizon` steps in every environment with the current policy, estimates
advantages, and takes a few epochs of clipped policy and value gradients. Log-probabilities of the
rollout come from the very weights that acted, so the first ratio is exactly 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from operant.engines.deep import losses
from operant.engines.deep.actor_critic import ActorCriticLearner
from operant.engines.deep.arithmetic import Arithmetic
from operant.engines.deep.return_scale import ReturnScale
from operant.engines.deep.returns import gae
from operant.engines.deep.rollout import Rollout
from operant.engines.deep.vision import laid_out
from operant.run.seeding import Seeds
from operant.spec.algorithms import PpoSpec
from operant.spec.fields import value_at
from operant.spec.schema import Spec


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


class Ppo(ActorCriticLearner):
    """The learner; how it plays and what survives a restart is in its base."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, PpoSpec)
        self.algorithm = spec.agent.algorithm
        self.rng_shuffle = seeds.rng("shuffle")
        streams = {"shuffle": self.rng_shuffle}
        returns = ReturnScale(
            squeeze=self.algorithm.symlog,
            standardise=self.algorithm.normalize_v_targets,
            spread=self.algorithm.normalize_advantages == "percentile",
        )
        super().__init__(spec, seeds, device, self.algorithm.gamma, self.algorithm.time_horizon, streams, returns)

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
        standardised = self.algorithm.normalize_advantages == "standardise"
        advantage = losses.standardise(batch.advantage) if standardised else batch.advantage
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
        obs = laid_out(self.tensor(rollout.obs).flatten(0, 1))
        action = self.tensor(rollout.action).flatten(0, 1)
        output, flat_value = self.judge(obs)
        logp, _ = self.distribution.log_prob_and_entropy(output, action, self.net.log_std)
        value = self.returns.value_of(flat_value.cpu().numpy().reshape(steps, num))
        settings = self.algorithm
        ahead, ends = self.next_values(rollout, value), (rollout.terminated, rollout.truncated)
        advantage = gae(rollout.reward, value, ahead, *ends, settings.gamma, settings.lam)
        self.returns.learn(advantage + value)
        target = self.returns.output_of(advantage + value)
        if settings.normalize_advantages == "percentile":
            advantage = advantage / np.float32(self.returns.spread)
        return Samples(obs, action, logp, flat_value, self.tensor(advantage).flatten(), self.tensor(target).flatten())

    def judge(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Policy output and value of all samples; images go by minibatch, since their features fill the memory."""
        if obs.ndim == 2:
            return self.net(obs)
        outputs, values = zip(*map(self.net, obs.split(self.algorithm.minibatch_size)), strict=True)
        return torch.cat(outputs), torch.cat(values)

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
