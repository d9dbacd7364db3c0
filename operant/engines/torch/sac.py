"""Soft actor-critic (Haarnoja et al., 2018), for continuous and for discrete actions, read top to bottom.

A round plays `training_frequency` frames and takes `training_iter` gradient steps, each of the critics
towards their target networks, then of the policy and of the temperature alpha, which weighs its entropy.

Critics, policy and alpha need only two things of the policy at a state: q = E_a[Q(s, a)], where Q is the smaller
of the critics' values or their mean, and logp = E_a[log pi(a|s)]. A tanh-Gaussian policy estimates both by one
reparametrized sample, a categorical one computes them exactly (Christodoulou, 2019); the rest is the same.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch import losses
from operant.engines.torch.actor import Actor
from operant.engines.torch.checkpoint import Weights
from operant.engines.torch.networks.acting import forward_for_acting
from operant.engines.torch.networks.heads import features
from operant.engines.torch.networks.layers import linear
from operant.engines.torch.networks.twin_critics import Critics, TwinCritic, TwinImageCritic, critic_net, polyak_update
from operant.engines.torch.normalize import ObservationNormalizer
from operant.engines.torch.off_policy import OffPolicyCollector, Sample, critic_step
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.policies import Categorical, Policy, TanhGaussian, tanh_gaussian_sample
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import Ended
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import SacSpec, SoftAlgorithm
from operant.spec.settings.optimizers import OptimizerSpec

CRITIC_METRICS = ("loss/q", "q/mean", "optim/grad_norm")
POLICY_METRICS = ("loss/policy", "policy/entropy", "policy/temperature")


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
    """A fresh policy for these observations and actions: logits, or means and log deviations."""
    first, width = features(spec.agent.net, obs_shape)
    outputs = action_kind(obs_shape, actions).policy_outputs
    return nn.Sequential(*first, linear(spec.agent.net, width, outputs, gain=spec.agent.net.actor_gain))


def build_actor(spec: Spec, net: nn.Sequential, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`."""
    normalizer = ObservationNormalizer(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    return Actor(forward_for_acting(net), normalizer, action_kind(obs_shape, actions).policy)


class Sac:
    """The learner: policy, twin critics and their targets, temperature and replay."""

    ENGINE = "torch"
    build_net = staticmethod(build_net)
    build_actor = staticmethod(build_actor)

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, SacSpec)
        self.spec = spec
        self.algorithm = spec.agent.algorithm
        self.collector = OffPolicyCollector(spec, self.algorithm, seeds, device)
        self.tracker = self.collector.tracker
        shape, actions = self.collector.vector.obs_shape, self.collector.vector.actions
        self.actions = action_kind(shape, actions, self.algorithm.critic_reduction)
        torch.manual_seed(seeds.integer("init"))
        self.policy = self.build_net(spec, shape, actions).to(device)
        self.critic = build_critics(spec, self.actions, shape).to(device)
        self.net = nn.ModuleList([self.policy, self.critic])
        optimizer = spec.agent.net.optimizer
        self.policy_optimizer = FlatOptimizer(optimizer, [list(self.policy.parameters())], [optimizer.lr])
        critic_lr = optimizer.critic_lr or optimizer.lr
        self.critic_optimizer = FlatOptimizer(optimizer, [list(self.critic.parameters())], [critic_lr])
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        target_entropy = self.actions.target_entropy(self.algorithm.discrete_entropy)
        self.temperature = Temperature(self.algorithm, optimizer, target_entropy, device)
        self.actor = self.build_actor(spec, self.policy, shape, actions)
        self.rng_noise = seeds.rng("noise")
        learner = {
            "critic": Weights(self.critic),
            "policy_optimiser": self.policy_optimizer,
            "critic_optimiser": self.critic_optimizer,
            "target": Weights(self.target),
            "temperature": Weights(self.temperature),
            "temperature_optimiser": self.temperature.optimizer,
        }
        self.snapshot = self.collector.snapshot(self.policy, self.actor, learner, self.rng_noise)

    def iterate(self) -> list[Ended]:
        """One round of play and learning."""
        ended = self.collector.collect(self.actor)
        if not self.collector.warming_up:
            self.learn()
        return ended

    def learn(self) -> None:
        """`training_iter` gradient steps."""
        done = self.tracker.frames / self.spec.env.max_frame
        lr = self.policy_optimizer.anneal(done)
        self.critic_optimizer.anneal(done)
        self.temperature.optimizer.anneal(done)
        critic_metrics: list[Tensor] = []
        policy_metrics: list[Tensor] = []
        for _ in range(self.algorithm.training_iter):
            batch, alpha = self.collector.sample(self.actor), self.temperature.value()
            noise = self.collector.tensor(self.actions.policy.noise(self.rng_noise, (2, len(batch.reward))))
            critic_metrics.append(self.critic_step(batch, alpha, noise[0]))
            self.tracker.updates += 1
            if self.tracker.updates % self.algorithm.policy_delay == 0:
                loss, logp = policy_step(self, batch, alpha, noise[1])
                self.temperature.update(logp)
                policy_metrics.append(torch.stack((loss, -logp.mean(), alpha.squeeze())))
            polyak_update(self.target, self.critic, self.algorithm.polyak)
        self.tracker.add_means(CRITIC_METRICS, critic_metrics)
        self.tracker.add_means(POLICY_METRICS, policy_metrics)
        self.tracker.add({"optim/lr": lr})

    def critic_step(self, batch: Sample, alpha: Tensor, noise: Tensor) -> Tensor:
        """Descend both critics' errors towards the same target; returns `CRITIC_METRICS`."""
        q = self.actions.q_taken(self.critic(self.actions.inputs(batch.obs, batch.action)), batch.action)
        target = self.targets(batch, alpha, noise)
        return critic_step(self.collector, self.critic_optimizer, batch, q, target)

    @torch.no_grad()
    def targets(self, batch: Sample, alpha: Tensor, noise: Tensor) -> Tensor:
        """r + gamma (E[Q'(s', a')] - alpha E[log pi(a'|s')]), with a' from the current policy."""
        next_q, next_logp = self.actions.expect(self.policy(batch.next_obs), self.target, batch.next_obs, noise)
        return losses.q_target(batch.reward, batch.terminated, next_q - alpha * next_logp, self.algorithm.gamma)

    def update_counts(self) -> UpdateCounts:
        """How frames become gradient steps, and how large the replay will be."""
        return self.collector.update_counts()


class SoftPolicy(Protocol):
    """What the policy's step needs of SAC and of CrossQ."""

    actions: ActionKind
    policy: nn.Sequential
    policy_optimizer: FlatOptimizer

    @property
    def critic(self) -> Critics:
        """The two critics."""
        ...


def policy_step(learner: SoftPolicy, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Descend E[alpha log pi - Q]; returns the loss and log pi at each state."""
    output = learner.policy(batch.obs)
    q, logp = learner.actions.expect(output, learner.critic.forward_frozen, batch.obs, noise)
    loss = losses.sac_policy_loss(q, logp, alpha)
    learner.policy_optimizer.step(loss)
    return loss.detach(), logp.detach()


class Temperature(nn.Module):
    """The weight alpha of the entropy; where it is learnt, it seeks the target entropy within its bounds."""

    def __init__(self, settings: SoftAlgorithm, optimizer: OptimizerSpec, target_entropy: float, device: torch.device):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((1,), math.log(settings.temperature), device=device))
        self._target = settings.entropy_scale * target_entropy
        # One number needs neither limit nor decay: both are for networks.
        plain = optimizer.model_copy(update={"clip_grad_norm": None, "weight_decay": 0.0})
        self.optimizer = FlatOptimizer(plain, [[self.log_alpha]], [optimizer.lr])
        self._learns = settings.learn_temperature
        bounds = (settings.temperature_min, settings.temperature_max)
        self._least, self._most = (None if bound is None else math.log(bound) for bound in bounds)

    def value(self) -> Tensor:
        """alpha, as a constant."""
        return self.log_alpha.detach().exp()

    def update(self, logp: Tensor) -> None:
        """Raise alpha where the policy's entropy -E[log pi] is below the target, and lower it where above."""
        if not self._learns:
            return
        self.optimizer.step(losses.alpha_loss(self.log_alpha, logp, self._target))
        if self._least is not None or self._most is not None:
            self.log_alpha.detach().clamp_(self._least, self._most)


class ActionKind(ABC):
    """What depends on the kind of action.

    A policy's sample is an action, or the probabilities of all of them; critics read `inputs` and
    give outputs [2, B, K], which `reduction` makes one.
    """

    policy: Policy
    policy_outputs: int
    critic_inputs: int
    critic_outputs: int
    reduction: str

    @abstractmethod
    def sample(self, output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """A sample of the policy with these outputs, and E_a[log pi(a|s)] [B]."""

    @abstractmethod
    def inputs(self, obs: Tensor, sample: Tensor) -> Tensor:
        """What the critics read of a sample, or an action, in each observation."""

    @abstractmethod
    def q_taken(self, outputs: Tensor, action: Tensor) -> Tensor:
        """Both critics' values [2, B] of actions that were played."""

    @abstractmethod
    def q_expected(self, outputs: Tensor, sample: Tensor) -> Tensor:
        """E_a[Q(s, a)] [B] under a sample."""

    @abstractmethod
    def target_entropy(self, discrete_share: float) -> float:
        """The entropy to seek with these actions: of discrete ones, this share of the largest there is."""

    def expect(
        self, output: Tensor, critic: Callable[[Tensor], Tensor], obs: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        """E_a[Q(s, a)] and E_a[log pi(a|s)], each [B], under the policy with these outputs."""
        sample, logp = self.sample(output, noise)
        return self.q_expected(critic(self.inputs(obs, sample)), sample), logp


class TanhGaussianActions(ActionKind):
    """Real actions in (-1, 1): a = tanh(u), u normal with learnt mean and deviation."""

    def __init__(self, observation: int, size: int, reduction: str) -> None:
        self.policy, self.reduction = TanhGaussian(size), reduction
        self.policy_outputs = 2 * size
        self.critic_inputs, self.critic_outputs = observation + size, 1
        self._size = size

    def sample(self, output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        return tanh_gaussian_sample(output, noise)

    def inputs(self, obs: Tensor, sample: Tensor) -> Tensor:
        return torch.cat((obs, sample), -1)

    def q_taken(self, outputs: Tensor, action: Tensor) -> Tensor:
        return outputs.squeeze(-1)

    def q_expected(self, outputs: Tensor, sample: Tensor) -> Tensor:
        return losses.reduce_critics(outputs.squeeze(-1), self.reduction)

    def target_entropy(self, discrete_share: float) -> float:
        return -float(self._size)


class CategoricalActions(ActionKind):
    """Discrete actions: the critics value all of them at once, so expectations are sums."""

    def __init__(self, observation: int, count: int, reduction: str) -> None:
        self.policy, self.reduction = Categorical(count), reduction
        self.policy_outputs = count
        self.critic_inputs, self.critic_outputs = observation, count

    def sample(self, output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(output, -1)
        p = log_p.exp()
        return p, (p * log_p).sum(-1)

    def inputs(self, obs: Tensor, sample: Tensor) -> Tensor:
        return obs

    def q_taken(self, outputs: Tensor, action: Tensor) -> Tensor:
        return outputs.gather(-1, action.expand(2, -1).unsqueeze(-1)).squeeze(-1)

    def q_expected(self, outputs: Tensor, sample: Tensor) -> Tensor:
        return (sample * losses.reduce_critics(outputs, self.reduction)).sum(-1)

    def target_entropy(self, discrete_share: float) -> float:
        return discrete_share * math.log(self.policy_outputs)


def action_kind(obs_shape: tuple[int, ...], actions: ActionMap, reduction: str = "min") -> ActionKind:
    """The kind of action that an action space asks for; `reduction` matters where critics are asked."""
    kind = CategoricalActions if actions.discrete else TanhGaussianActions
    return kind(int(np.prod(obs_shape)), actions.size, reduction)


def build_critics(spec: Spec, kind: ActionKind, obs_shape: tuple[int, ...]) -> Critics:
    """Fresh critics for these observations and this kind of action."""
    assert isinstance(spec.agent.algorithm, SacSpec)
    net = critic_net(spec.agent.net, spec.agent.algorithm.critic_hidden)
    if net.READS_IMAGES:
        return TwinImageCritic(net, obs_shape, kind.critic_outputs)
    return TwinCritic(net, kind.critic_inputs, kind.critic_outputs)
