"""Soft actor-critic (Haarnoja et al., 2018), for continuous and for discrete actions.

A round plays `training_frequency` frames and takes `training_iter` gradient steps, each of the
critics towards their slow copies, then of the policy and of the temperature. What the last two do,
and what depends on the kind of action, is in `soft.py`.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from operant.engines.torch import codec, losses
from operant.engines.torch.actor import Actor
from operant.engines.torch.experience import Sample
from operant.engines.torch.layers import linear
from operant.engines.torch.nets import features, forward_for_acting
from operant.engines.torch.normalise import ObservationNormaliser
from operant.engines.torch.soft import SoftLearner, actions_for
from operant.engines.torch.twin import Critics, TwinCritic, TwinImageCritic, blend
from operant.envs.vector.actions import ActionMap
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import Net
from operant.spec.settings.off_policy import SacSpec


class Sac(SoftLearner):
    """The learner: a soft learner whose critics learn from target critics."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, SacSpec)
        super().__init__(spec, spec.agent.algorithm, seeds, device)
        self.polyak = spec.agent.algorithm.polyak
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor = build_actor(spec, self.policy, self.experience.vector.obs_shape, self.experience.vector.actions)
        self.snapshot = self.take_snapshot({"target": codec.Weights(self.target), **self.parts()})

    def new_policy(self, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
        return build_net(self.spec, obs_shape, actions)

    def new_critics(self, net: Net, obs_shape: tuple[int, ...], actions: ActionMap) -> Critics:
        kind = actions_for(obs_shape, actions)
        if net.READS_IMAGES:
            return TwinImageCritic(net, obs_shape, kind.critic_outputs)
        return TwinCritic(net, kind.critic_inputs, kind.critic_outputs)

    def gradient_step(self, batch: Sample, of_critics: list[Tensor], of_policy: list[Tensor]) -> None:
        """A soft learner's, after which the target critics follow."""
        super().gradient_step(batch, of_critics, of_policy)
        blend(self.target, self.critic, self.polyak)

    def values_and_targets(self, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        q = self.actions.taken(self.critic, batch.obs, batch.action)
        return q, self.targets(batch, alpha, noise)

    @torch.no_grad()
    def targets(self, batch: Sample, alpha: Tensor, noise: Tensor) -> Tensor:
        """r + gamma (E[min_k Q'_k(s', a')] - alpha E[log pi(a'|s')]), with a' from the current policy."""
        next_q, next_logp = self.actions.expect(self.policy(batch.next_obs), self.target, batch.next_obs, noise)
        return losses.q_target(batch.reward, batch.terminated, next_q - alpha * next_logp, self.algorithm.gamma)


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
    """A fresh policy for these observations and actions: logits, or means and log deviations."""
    first, width = features(spec.agent.net, obs_shape)
    outputs = actions_for(obs_shape, actions).policy_outputs
    return nn.Sequential(*first, linear(spec.agent.net, width, outputs, gain=spec.agent.net.actor_gain))


def build_actor(spec: Spec, net: nn.Sequential, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`."""
    normaliser = ObservationNormaliser(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    return Actor(forward_for_acting(net), normaliser, actions_for(obs_shape, actions).policy)
