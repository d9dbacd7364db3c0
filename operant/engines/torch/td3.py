"""Twin delayed deterministic policy gradient (Fujimoto et al., 2018), for bounded continuous actions.

A round plays `training_frequency` frames with Gaussian exploration and takes `training_iter`
gradient steps of the critics; every `policy_delay`-th of them also moves the policy and the targets.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch import losses
from operant.engines.torch.actor import Actor
from operant.engines.torch.checkpoint import Weights
from operant.engines.torch.networks.acting import forward_for_acting
from operant.engines.torch.networks.heads import features
from operant.engines.torch.networks.layers import linear
from operant.engines.torch.networks.twin_critics import TwinCritic, critic_net, polyak_update
from operant.engines.torch.normalize import ObservationNormalizer
from operant.engines.torch.off_policy import OffPolicyCollector, Sample, critic_step
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.policies import NoisyTanh
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import Ended
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import Td3Spec


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
    """A fresh policy for these observations and actions; its action is the tanh of its output."""
    first, width = features(spec.agent.net, obs_shape)
    return nn.Sequential(*first, linear(spec.agent.net, width, actions.size, gain=spec.agent.net.actor_gain))


def build_actor(spec: Spec, net: nn.Sequential, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`; sampled play explores as much as training does at its end."""
    assert isinstance(spec.agent.algorithm, Td3Spec)
    normalizer = ObservationNormalizer(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    policy = NoisyTanh(actions.size, value_at(spec.agent.algorithm.exploration_noise, spec.env.max_frame))
    return Actor(forward_for_acting(net), normalizer, policy)


class Td3:
    """The learner: policy, twin critics, their targets and exploration noise."""

    ENGINE = "torch"
    build_net = staticmethod(build_net)
    build_actor = staticmethod(build_actor)

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, Td3Spec)
        self.spec = spec
        self.algorithm = spec.agent.algorithm
        self.collector = OffPolicyCollector(spec, self.algorithm, seeds, device)
        self.tracker = self.collector.tracker
        shape, actions = self.collector.vector.obs_shape, self.collector.vector.actions
        torch.manual_seed(seeds.integer("init"))
        self.policy = self.build_net(spec, shape, actions).to(device)
        critic = critic_net(spec.agent.net, self.algorithm.critic_hidden)
        self.critic = TwinCritic(critic, int(np.prod(shape)) + actions.size, 1).to(device)
        self.net = nn.ModuleList([self.policy, self.critic])
        optimizer = spec.agent.net.optimizer
        self.policy_optimizer = FlatOptimizer(optimizer, [list(self.policy.parameters())], [optimizer.lr])
        critic_lr = optimizer.critic_lr or optimizer.lr
        self.critic_optimizer = FlatOptimizer(optimizer, [list(self.critic.parameters())], [critic_lr])
        self.target_policy = copy.deepcopy(self.policy).requires_grad_(False)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor = self.build_actor(spec, self.policy, shape, actions)
        self.exploration = NoisyTanh(actions.size, self._deviation())
        self.actor.policy = self.exploration
        self.rng_noise = seeds.rng("noise")
        learner = {
            "critic": Weights(self.critic),
            "policy_optimiser": self.policy_optimizer,
            "critic_optimiser": self.critic_optimizer,
            "target": Weights(self.target),
            "target_policy": Weights(self.target_policy),
        }
        self.snapshot = self.collector.snapshot(self.policy, self.actor, learner, self.rng_noise)

    def iterate(self) -> list[Ended]:
        """One round of play and learning."""
        self.exploration.deviation = self._deviation()
        ended = self.collector.collect(self.actor)
        if not self.collector.warming_up:
            self.learn()
        return ended

    def _deviation(self) -> float:
        return value_at(self.algorithm.exploration_noise, self.tracker.frames)

    def learn(self) -> None:
        """`training_iter` gradient steps."""
        done = self.tracker.frames / self.spec.env.max_frame
        lr = self.policy_optimizer.anneal(done)
        self.critic_optimizer.anneal(done)
        for _ in range(self.algorithm.training_iter):
            batch = self.collector.sample(self.actor)
            self.critic_step(batch)
            if self.tracker.updates % self.algorithm.policy_delay == 0:
                self.policy_step(batch)
                polyak_update(self.target, self.critic, self.algorithm.polyak)
                polyak_update(self.target_policy, self.policy, self.algorithm.polyak)
        self.tracker.add({"optim/lr": lr, "explore/noise": self.exploration.deviation})

    def critic_step(self, batch: Sample) -> None:
        """Descend both critics' squared errors towards the same target."""
        noise = self.actor.policy.noise(self.rng_noise, (len(batch.reward),))
        q = self.critic(torch.cat((batch.obs, batch.action), -1)).squeeze(-1)
        target = self.targets(batch, self.collector.tensor(noise))
        metrics = critic_step(self.collector, self.critic_optimizer, batch, q, target)
        self.tracker.updates += 1
        self.tracker.add_means(("loss/q", "q/mean", "optim/grad_norm"), [metrics])

    @torch.no_grad()
    def targets(self, batch: Sample, noise: Tensor) -> Tensor:
        """r + gamma min_k Q'_k(s', a'), where a' is the target policy's action smoothed by clipped noise."""
        settings = self.algorithm
        action = losses.smoothed_action(
            self.target_policy(batch.next_obs).tanh(), noise, settings.target_noise, settings.target_noise_clip
        )
        next_q = self.target(torch.cat((batch.next_obs, action), -1)).squeeze(-1).amin(0)
        return losses.q_target(batch.reward, batch.terminated, next_q, settings.gamma)

    def policy_step(self, batch: Sample) -> None:
        """Ascend the first critic's value of the policy's own actions."""
        action = self.policy(batch.obs).tanh()
        loss = -self.critic.forward_frozen(torch.cat((batch.obs, action), -1), critics=1).mean()
        self.policy_optimizer.step(loss)
        self.tracker.add({"loss/policy": loss.item()})

    def update_counts(self) -> UpdateCounts:
        """How frames become gradient steps, and how large the replay will be."""
        return self.collector.update_counts()
