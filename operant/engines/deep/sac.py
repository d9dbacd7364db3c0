"""Soft actor-critic (Haarnoja et al., 2018), for continuous and for discrete actions.

A round plays `training_frequency` frames and takes `training_iter` gradient steps, each of the
critics, then of the policy, then of the temperature. All three need only two things of the policy
at a state: q = E_a[min_k Q_k(s, a)] and logp = E_a[log pi(a|s)]. `Squashed` estimates both by one
reparametrised draw, `Choice` computes them exactly (Christodoulou, 2019); the rest is the same.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.deep import codec, losses
from operant.engines.deep.actor import Actor
from operant.engines.deep.arithmetic import Arithmetic
from operant.engines.deep.experience import Experience, Sample
from operant.engines.deep.layers import linear
from operant.engines.deep.nets import features, forward_for_acting
from operant.engines.deep.normalise import ObservationNormaliser
from operant.engines.deep.optimise import FlatOptimiser
from operant.engines.deep.policies import Categorical, Policy, SquashedGaussian, squashed_sample
from operant.engines.deep.twin import TwinCritic, TwinImageCritic, blend
from operant.envs.gym import ActionMap, Ended
from operant.run.seeding import Seeds
from operant.spec.nets import OptimizerSpec
from operant.spec.off_policy import SacSpec
from operant.spec.schema import Spec

Critic = Callable[[Tensor], Tensor]
DISCRETE_SHARE = 0.98  # of the largest entropy, log n: Christodoulou's target


class Actions(ABC):
    """What depends on the kind of action."""

    policy: Policy
    policy_outputs: int
    critic_inputs: int
    critic_outputs: int
    target_entropy: float

    @abstractmethod
    def taken(self, critic: Critic, obs: Tensor, action: Tensor) -> Tensor:
        """Both critics' values [2, B] of actions that were played."""

    @abstractmethod
    def expect(self, output: Tensor, critic: Critic, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """E_a[min_k Q_k(s, a)] and E_a[log pi(a|s)], each [B], under the policy with these outputs."""


class Squashed(Actions):
    """Real actions in (-1, 1): a = tanh(u), u normal with learnt mean and deviation."""

    def __init__(self, observation: int, size: int) -> None:
        self.policy = SquashedGaussian(size)
        self.policy_outputs = 2 * size
        self.critic_inputs, self.critic_outputs = observation + size, 1
        self.target_entropy = -float(size)

    def taken(self, critic: Critic, obs: Tensor, action: Tensor) -> Tensor:
        return critic(torch.cat((obs, action), -1)).squeeze(-1)

    def expect(self, output: Tensor, critic: Critic, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        action, logp = squashed_sample(output, noise)
        return self.taken(critic, obs, action).amin(0), logp


class Choice(Actions):
    """Discrete actions: the critics value all of them at once, so expectations are sums."""

    def __init__(self, observation: int, count: int) -> None:
        self.policy = Categorical(count)
        self.policy_outputs = count
        self.critic_inputs, self.critic_outputs = observation, count
        self.target_entropy = DISCRETE_SHARE * math.log(count)

    def taken(self, critic: Critic, obs: Tensor, action: Tensor) -> Tensor:
        return critic(obs).gather(-1, action.expand(2, -1).unsqueeze(-1)).squeeze(-1)

    def expect(self, output: Tensor, critic: Critic, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(output, -1)
        p = log_p.exp()
        return (p * critic(obs).amin(0)).sum(-1), (p * log_p).sum(-1)


class Temperature(nn.Module):
    """The weight alpha of the entropy; where it is learnt, it seeks the target entropy."""

    def __init__(self, settings: SacSpec, optimizer: OptimizerSpec, target_entropy: float, device: torch.device):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((1,), math.log(settings.temperature), device=device))
        self._target = settings.entropy_scale * target_entropy
        # One number needs neither limit nor decay: both are for networks.
        plain = optimizer.model_copy(update={"clip_grad_norm": None, "weight_decay": 0.0})
        self.optimiser = FlatOptimiser(plain, [[self.log_alpha]], [optimizer.lr])
        self._learns = settings.learn_temperature

    def value(self) -> Tensor:
        """alpha, as a constant."""
        return self.log_alpha.detach().exp()

    def step(self, logp: Tensor) -> None:
        """Raise alpha where the policy's entropy -E[log pi] is below the target, and lower it where above."""
        if self._learns:
            self.optimiser.step(losses.temperature_loss(self.log_alpha, logp, self._target))


class Sac:
    """The learner: experience, policy, twin critics, temperature and everything that must survive a restart."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, SacSpec)
        self.spec = spec
        self.algorithm = spec.agent.algorithm
        self.experience = Experience(spec, self.algorithm, seeds, device)
        self.tracker = self.experience.tracker
        shape, actions = self.experience.vector.obs_shape, self.experience.vector.actions
        self.actions = actions_for(shape, actions)
        torch.manual_seed(seeds.integer("init"))
        self.policy = build_net(spec, shape, actions).to(device)
        self.critic = build_critic(spec, shape, self.actions).to(device)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.net = nn.ModuleList([self.policy, self.critic])
        optimizer = spec.agent.net.optimizer
        self.policy_optimiser = FlatOptimiser(optimizer, [list(self.policy.parameters())], [optimizer.lr])
        critic_lr = optimizer.critic_lr or optimizer.lr
        self.critic_optimiser = FlatOptimiser(optimizer, [list(self.critic.parameters())], [critic_lr])
        self.temperature = Temperature(self.algorithm, optimizer, self.actions.target_entropy, device)
        self.actor = build_actor(spec, self.policy, shape, actions)
        self.rng_noise = seeds.rng("noise")
        self.snapshot = codec.Snapshot(
            policy={"net": codec.Weights(self.policy), "obs": self.actor.normaliser},
            learner={
                "critic": codec.Weights(self.critic),
                "target": codec.Weights(self.target),
                "temperature": codec.Weights(self.temperature),
                "policy_optimiser": self.policy_optimiser,
                "critic_optimiser": self.critic_optimiser,
                "temperature_optimiser": self.temperature.optimiser,
                **self.experience.parts(),
            },
            tracker=self.tracker,
            streams={"noise": self.rng_noise, **self.experience.streams()},
        )

    def iterate(self) -> list[Ended]:
        """One round of play and learning."""
        ended = self.experience.play(self.actor)
        if not self.experience.warming_up:
            self.learn()
        return ended

    def learn(self) -> None:
        """`training_iter` gradient steps."""
        done = self.tracker.frames / self.spec.env.max_frame
        lr = self.policy_optimiser.anneal(done)
        self.critic_optimiser.anneal(done)
        self.temperature.optimiser.anneal(done)
        steps = range(self.algorithm.training_iter)
        reports = [self.gradient_step(self.experience.sample(self.actor)) for _ in steps]
        names = ("loss/q", "q/mean", "optim/grad_norm", "loss/policy", "policy/entropy", "policy/temperature")
        means = torch.stack(reports).mean(0).tolist()
        self.tracker.add(dict(zip(names, means, strict=True)) | {"optim/lr": lr})

    def gradient_step(self, batch: Sample) -> Tensor:
        """One step each of critics, policy and temperature; then the target critics follow."""
        alpha = self.temperature.value()
        noise = self.experience.tensor(self.actions.policy.noise(self.rng_noise, (2, len(batch.reward))))
        q_loss, q, norm = self.critic_step(batch, alpha, noise[0])
        policy_loss, logp = self.policy_step(batch, alpha, noise[1])
        self.temperature.step(logp)
        blend(self.target, self.critic, self.algorithm.polyak)
        self.tracker.updates += 1
        return torch.stack((q_loss, q, norm, policy_loss, -logp.mean(), alpha.squeeze()))

    def critic_step(self, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Descend the critics' squared errors; returns loss, mean value and gradient norm."""
        q = self.actions.taken(self.critic, batch.obs, batch.action)
        error = q - self.targets(batch, alpha, noise)
        loss = losses.weighted_td_loss(error, batch.weight, "mse")
        norm = self.critic_optimiser.step(loss)
        self.experience.learnt(batch, error)
        return loss.detach(), q.detach().mean(), norm

    @torch.no_grad()
    def targets(self, batch: Sample, alpha: Tensor, noise: Tensor) -> Tensor:
        """r + gamma (E[min_k Q'_k(s', a')] - alpha E[log pi(a'|s')]), with a' from the current policy."""
        next_q, next_logp = self.actions.expect(self.policy(batch.next_obs), self.target, batch.next_obs, noise)
        return losses.q_target(batch.reward, batch.terminated, next_q - alpha * next_logp, self.algorithm.gamma)

    def policy_step(self, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Descend E[alpha log pi - min_k Q_k]; returns the loss and log pi at each state."""
        q, logp = self.actions.expect(self.policy(batch.obs), self.critic.judge, batch.obs, noise)
        loss = losses.soft_policy_loss(q, logp, alpha)
        self.policy_optimiser.step(loss)
        return loss.detach(), logp.detach()

    def arithmetic(self) -> Arithmetic:
        """How frames become gradient steps, and how large the replay will be."""
        return self.experience.arithmetic()


def actions_for(obs_shape: tuple[int, ...], actions: ActionMap) -> Actions:
    """The kind of action that an action space asks for."""
    return (Choice if actions.discrete else Squashed)(int(np.prod(obs_shape)), actions.size)


def build_critic(spec: Spec, obs_shape: tuple[int, ...], actions: Actions) -> TwinCritic | TwinImageCritic:
    """Fresh critics of these actions."""
    if spec.agent.net.READS_IMAGES:
        return TwinImageCritic(spec.agent.net, obs_shape, actions.critic_outputs)
    return TwinCritic(spec.agent.net, actions.critic_inputs, actions.critic_outputs)


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
    """A fresh policy for these observations and actions: logits, or means and log deviations."""
    first, width = features(spec.agent.net, obs_shape)
    outputs = actions_for(obs_shape, actions).policy_outputs
    return nn.Sequential(*first, linear(spec.agent.net, width, outputs, gain=spec.agent.net.actor_gain))


def build_actor(spec: Spec, net: nn.Sequential, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that plays `net`."""
    normaliser = ObservationNormaliser(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    return Actor(forward_for_acting(net), normaliser, actions_for(obs_shape, actions).policy)
