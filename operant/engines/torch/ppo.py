"""Proximal policy optimization (Schulman et al., 2017), read top to bottom.

Each update plays `time_horizon` steps in every environment with the current policy, or `training_episodes`
whole episodes, estimates advantages, and takes a few epochs of clipped policy and value gradients.
Log-probabilities of the rollout come from the very weights that acted, so the first ratio is 1, up to the
rounding of a batch's size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.advantages import ReturnScale, gae
from operant.engines.torch.networks.heads import ActorCritic
from operant.engines.torch.on_policy import ObservationBatch, OnPolicyLearner
from operant.engines.torch.rollout import Rollout
from operant.engines.torch.update_counts import UpdateCounts, played_so_far
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.ppo import ProximalAlgorithm


@dataclass(frozen=True)
class Samples:
    """One rollout as rows, ready for minibatches: single steps, or the sequences of a recurrent network."""

    obs: ObservationBatch
    action: Tensor
    logp: Tensor
    value: Tensor
    advantage: Tensor
    target: Tensor
    mask: Tensor | None = None

    def take(self, index: Tensor | slice) -> Samples:
        """The samples at `index`; those of a slice are not copied."""
        return Samples(
            obs=self.obs[index],
            action=self.action[index],
            logp=self.logp[index],
            value=self.value[index],
            advantage=self.advantage[index],
            target=self.target[index],
            mask=None if self.mask is None else self.mask[index],
        )


class Ppo(OnPolicyLearner):
    """The learner; how it plays and what survives a restart is in its base."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, ProximalAlgorithm)
        self.algorithm = spec.agent.algorithm
        self.rng_shuffle = seeds.rng("shuffle")
        streams = {"shuffle": self.rng_shuffle}
        returns = ReturnScale(
            squeeze=self.algorithm.symlog,
            standardize=self.algorithm.normalize_v_targets,
            spread=self.algorithm.normalize_advantages == "percentile",
        )
        super().__init__(spec, seeds, device, self.algorithm.gamma, self.algorithm.time_horizon, streams, returns)
        # What acts through torch can tell values too, and saves a pass over the rollout; in bfloat16 that pass must
        # be of the arithmetic that learns, or the first ratio would be off.
        if spec.agent.net.READS_IMAGES and isinstance(self.net, ActorCritic) and spec.meta.precision == "float32":
            self.forward_acting = self.net.policy_and_value()

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Several epochs of minibatches over the rollout; returns what to log, averaged over minibatches."""
        settings, frame = self.algorithm, self.tracker.frames
        clip, entropy_coef = value_at(settings.clip_eps, frame), value_at(settings.entropy_coef, frame)
        lr = self.optimizer.anneal(frame / self.spec.env.max_frame)
        samples = self.samples(rollout)
        rows, size = len(samples.logp), max(1, settings.minibatch_size // samples.logp[0].numel())
        reports: list[Tensor] = []
        for _ in range(settings.training_epoch):
            shuffled = samples.take(torch.from_numpy(self.rng_shuffle.permutation(rows)).to(self.device))
            for start in range(0, rows, size):
                batch = shuffled.take(slice(start, start + size))
                reports.append(self.gradient_step(batch, clip, entropy_coef))
            if (
                settings.target_kl is not None
                and float(self.ranks.average(reports[-1][3].clone())) > settings.target_kl
            ):
                break
        names = ("loss/policy", "loss/value", "policy/entropy", "policy/kl", "policy/clip_fraction", "optim/grad_norm")
        means = self.ranks.average(torch.stack(reports).mean(0)).tolist()
        return dict(zip(names, means, strict=True)) | {"optim/lr": lr}

    def gradient_step(self, batch: Samples, clip: float, entropy_coef: float) -> Tensor:
        """Descend policy loss + value loss - entropy bonus on this process's share of one minibatch."""
        mine = self.ranks.rows(len(batch.logp))
        standardized = self.algorithm.normalize_advantages == "standardise"
        advantage = losses.standardize(batch.advantage) if standardized else batch.advantage
        batch, advantage = batch.take(mine), advantage[mine]
        output, value = self.forward(batch.obs)
        logp, entropy = self.distribution.log_prob_and_entropy(output, batch.action, self.net.log_std, batch.mask)
        policy_loss = losses.clipped_surrogate(logp, batch.logp, advantage, clip)
        if self.algorithm.clip_vloss is None:
            value_loss = losses.value_loss(value, batch.target, self.algorithm.val_loss)
        else:
            value_loss = losses.clipped_value_loss(value, batch.value, batch.target, self.algorithm.clip_vloss)
        bonus = entropy.mean()
        norm = self.optimizer.step(policy_loss + self.algorithm.val_loss_coef * value_loss - entropy_coef * bonus)
        self.tracker.updates += 1
        with torch.no_grad():
            kl = losses.approximate_kl(logp, batch.logp)
            clipped = losses.clip_fraction(logp, batch.logp, clip)
            return torch.stack((policy_loss, value_loss, bonus, kl, clipped, norm))

    @torch.no_grad()
    def samples(self, rollout: Rollout) -> Samples:
        """Log-probabilities, values, advantages and value targets of a rollout, in one pass."""
        obs, action, mask = self.observations(rollout), self.rows(rollout.action), self.legal(rollout)
        if rollout.outputs is None:
            mine = self.ranks.rows(len(action))
            output, critic = (self.ranks.gather(part) for part in self.forward_in_minibatches(obs[mine]))
        else:
            output, critic = (self.rows(part) for part in rollout.outputs)
        logp, _ = self.distribution.log_prob_and_entropy(output, action, self.net.log_std, mask)
        value = self.returns.value_of(self.grid(critic))
        settings = self.algorithm
        ahead, ends = self.next_values(rollout, value), (rollout.terminated, rollout.truncated)
        advantage = gae(rollout.reward, value, ahead, *ends, settings.gamma, settings.lam)
        self.returns.update(advantage + value)
        target = self.returns.output_of(advantage + value)
        if settings.normalize_advantages == "percentile":
            advantage = advantage / np.float32(self.returns.spread)
        return Samples(obs, action, logp, critic, self.rows(advantage), self.rows(target), mask)

    def forward_in_minibatches(self, batch: ObservationBatch) -> tuple[Tensor, Tensor]:
        """Policy output and value of all samples; images go by minibatch, since their features fill the memory."""
        steps = 1 if batch.begun is None else batch.begun.shape[1]
        if batch.obs.ndim == (2 if batch.begun is None else 3):
            return self.forward(batch)
        size = max(1, self.algorithm.minibatch_size // steps)
        parts = [self.forward(batch[start : start + size]) for start in range(0, len(batch.obs), size)]
        outputs, values = zip(*parts, strict=True)
        return torch.cat(outputs), torch.cat(values)

    def update_counts(self) -> UpdateCounts:
        """How frames become updates, and updates gradient steps."""
        if self.episodes is not None:
            return self._update_counts_of_episodes(self.episodes)
        settings, envs = self.algorithm, self.spec.env.num_envs
        batch = envs * settings.time_horizon
        rollouts = -(-self.spec.env.max_frame // batch)
        minibatches = batch // settings.minibatch_size
        each = settings.training_epoch * minibatches
        share = settings.minibatch_size // settings.time_horizon
        whole = "" if self.actor.hidden_state is None else f", each of {share} whole sequences"
        lines = [
            f"{rollouts:,} updates x {batch:,} samples ({envs} envs x {settings.time_horizon} steps)"
            f" = {rollouts * batch:,} frames",
            f"each update: {settings.training_epoch} epochs x {minibatches} minibatches of {settings.minibatch_size}"
            f"{whole} = {each} gradient steps, {rollouts * each:,} in all",
        ]
        return UpdateCounts(lines, updates=rollouts * each)

    def _update_counts_of_episodes(self, episodes: int) -> UpdateCounts:
        """The same of whole episodes; how many frames those are is known once some were played."""
        settings, played = self.algorithm, played_so_far(self.spec, self.tracker)
        batch = f"minibatches of {settings.minibatch_size}" if self.actor.hidden_state is None else "all of them"
        lines = [
            f"each update: {played.shares(episodes)}, {settings.training_epoch} epochs of {batch}",
            f"about {played.updates:,} gradient steps in all if episodes stay as long as at first",
        ]
        return UpdateCounts(lines, updates=played.updates)
