"""Twin delayed deterministic policy gradient (Fujimoto et al., 2018), for bounded continuous actions.

A round plays `training_frequency` frames with Gaussian exploration and takes `training_iter`
gradient steps of the critics; every `policy_delay`-th of them also moves the policy and the targets.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch import codec, losses
from operant.engines.torch.actor import Actor
from operant.engines.torch.experience import Sample
from operant.engines.torch.layers import linear
from operant.engines.torch.nets import features, forward_for_acting
from operant.engines.torch.normalise import ObservationNormaliser
from operant.engines.torch.policies import NoisyTanh
from operant.engines.torch.twin import TwinCritic, blend
from operant.engines.torch.twin_learner import TwinLearner
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import Ended
from operant.run.seeding import Seeds
from operant.spec.fields import value_at
from operant.spec.schema import Spec
from operant.spec.settings.nets import Net
from operant.spec.settings.off_policy import Td3Spec


class Td3(TwinLearner):
    """The learner: policy, twin critics, their targets and exploration noise."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, Td3Spec)
        self.algorithm = spec.agent.algorithm
        super().__init__(spec, self.algorithm, seeds, device)
        vector = self.experience.vector
        self.target_policy = copy.deepcopy(self.policy).requires_grad_(False)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor = build_actor(spec, self.policy, vector.obs_shape, vector.actions)
        self.exploration = NoisyTanh(vector.actions.size, self._deviation())
        self.actor.policy = self.exploration
        targets = {"target": codec.Weights(self.target), "target_policy": codec.Weights(self.target_policy)}
        self.snapshot = self.take_snapshot(targets)

    def new_policy(self, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
        return build_net(self.spec, obs_shape, actions)

    def new_critics(self, net: Net, obs_shape: tuple[int, ...], actions: ActionMap) -> TwinCritic:
        return TwinCritic(net, int(np.prod(obs_shape)) + actions.size, 1)

    def iterate(self) -> list[Ended]:
        """One round of play and learning."""
        self.exploration.deviation = self._deviation()
        return super().iterate()

    def _deviation(self) -> float:
        return value_at(self.algorithm.exploration_noise, self.tracker.frames)

    def learn(self) -> None:
        """`training_iter` gradient steps."""
        done = self.tracker.frames / self.spec.env.max_frame
        lr = self.policy_optimiser.anneal(done)
        self.critic_optimiser.anneal(done)
        for _ in range(self.algorithm.training_iter):
            batch = self.experience.sample(self.actor)
            self.critic_step(batch)
            if self.tracker.updates % self.algorithm.policy_delay == 0:
                self.policy_step(batch)
                blend(self.target, self.critic, self.algorithm.polyak)
                blend(self.target_policy, self.policy, self.algorithm.polyak)
        self.tracker.add({"optim/lr": lr, "explore/noise": self.exploration.deviation})

    def critic_step(self, batch: Sample) -> None:
        """Descend both critics' squared errors towards the same target."""
        noise = self.actor.policy.noise(self.rng_noise, (len(batch.reward),))
        q = self.critic(torch.cat((batch.obs, batch.action), -1)).squeeze(-1)
        error = q - self.targets(batch, self.experience.tensor(noise))
        loss = losses.weighted_td_loss(error, batch.weight, "mse")
        norm = self.critic_optimiser.step(loss)
        self.tracker.updates += 1
        self.experience.learnt(batch, error)
        report = torch.stack((loss.detach(), q.detach().mean(), norm)).tolist()
        self.tracker.add(dict(zip(("loss/q", "q/mean", "optim/grad_norm"), report, strict=True)))

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
        loss = -self.critic.judge(torch.cat((batch.obs, action), -1), critics=1).mean()
        self.policy_optimiser.step(loss)
        self.tracker.add({"loss/policy": loss.item()})


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
    """A fresh policy for these observations and actions; its action is the tanh of its output."""
    first, width = features(spec.agent.net, obs_shape)
    return nn.Sequential(*first, linear(spec.agent.net, width, actions.size, gain=spec.agent.net.actor_gain))


def build_actor(spec: Spec, net: nn.Sequential, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`; sampled play explores as much as training does at its end."""
    assert isinstance(spec.agent.algorithm, Td3Spec)
    normaliser = ObservationNormaliser(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    policy = NoisyTanh(actions.size, value_at(spec.agent.algorithm.exploration_noise, spec.env.max_frame))
    return Actor(forward_for_acting(net), normaliser, policy)
