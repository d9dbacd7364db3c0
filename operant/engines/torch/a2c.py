"""Advantage actor-critic (Mnih et al., 2016), synchronous: one gradient step per rollout.

Each update plays `training_frequency` steps in every environment, or `training_episodes` whole episodes, estimates
how much better each action was than the critic expected, and makes the better ones more probable.
"""

from __future__ import annotations

import numpy as np
import torch

from operant.engines.torch import losses
from operant.engines.torch.advantages import ReturnScale, gae, n_step_returns
from operant.engines.torch.on_policy import OnPolicyLearner
from operant.engines.torch.rollout import Rollout
from operant.engines.torch.update_counts import UpdateCounts, episode_update_counts, rollout_update_counts
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.on_policy import AdvantageAlgorithm


class A2c(OnPolicyLearner):
    """The learner; how it plays and what survives a restart is in its base."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, AdvantageAlgorithm)
        self.algorithm = spec.agent.algorithm
        returns = ReturnScale(standardize=self.algorithm.normalize_v_targets)
        super().__init__(spec, seeds, device, self.algorithm.gamma, self.algorithm.training_frequency, {}, returns)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """One descent of policy loss + value loss - entropy bonus over the whole rollout."""
        settings, frame = self.algorithm, self.tracker.frames
        lr = self.optimizer.anneal(frame / self.spec.env.max_frame)
        obs, action, legal = self.observations(rollout), self.rows(rollout.action), self.legal(rollout)
        mine = self.ranks.rows(len(action))
        output, critic = self.forward(obs[mine])
        logp, entropy = self.distribution.log_prob_and_entropy(
            output, action[mine], self.net.log_std, None if legal is None else legal[mine]
        )
        value = self.returns.value_of(self.grid(self.ranks.gather(critic.detach())))
        estimated = self.advantages(rollout, value)
        advantage = self.rows(estimated)
        self.returns.update(value + estimated)
        target = self.rows(self.returns.output_of(value + estimated))
        value_loss = losses.value_loss(critic, target[mine], settings.val_loss)
        if settings.normalize_advantages:
            advantage = losses.standardize(advantage)
        policy_loss = losses.policy_gradient_loss(logp, advantage[mine])
        bonus = entropy.mean()
        entropy_coef = value_at(settings.entropy_coef, frame)
        norm = self.optimizer.step(policy_loss + settings.val_loss_coef * value_loss - entropy_coef * bonus)
        self.tracker.updates += 1
        names = ("loss/policy", "loss/value", "policy/entropy", "optim/grad_norm")
        found = self.ranks.average(torch.stack((policy_loss, value_loss, bonus, norm)).detach()).tolist()
        return dict(zip(names, found, strict=True)) | {"optim/lr": lr}

    def advantages(self, rollout: Rollout, value: np.ndarray) -> np.ndarray:
        """By generalized advantage estimation, or by returns of `num_step_returns` steps."""
        settings = self.algorithm
        ahead, ends = self.next_values(rollout, value), (rollout.terminated, rollout.truncated)
        if settings.num_step_returns is None:
            return gae(rollout.reward, value, ahead, *ends, settings.gamma, settings.lam)
        return n_step_returns(rollout.reward, ahead, *ends, settings.gamma, settings.num_step_returns) - value

    def update_counts(self) -> UpdateCounts:
        """How frames become updates, of one gradient step each."""
        if self.episodes is not None:
            return episode_update_counts(self.spec, self.tracker, self.episodes)
        return rollout_update_counts(self.spec, self.horizon)
