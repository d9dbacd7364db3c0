"""What SAC and CrossQ have in common: a policy that is rewarded for its entropy, and the temperature that weighs it.

Critics, policy and temperature need only two things of the policy at a state: q = E_a[min_k Q_k(s, a)]
and logp = E_a[log pi(a|s)]. `Squashed` estimates both by one reparametrised draw, `Choice` computes
them exactly (Christodoulou, 2019); the rest is the same.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch import codec, losses
from operant.engines.torch.experience import Sample
from operant.engines.torch.optimise import FlatOptimiser
from operant.engines.torch.policies import Categorical, Policy, SquashedGaussian, squashed_sample
from operant.engines.torch.twin_learner import TwinLearner
from operant.envs.vector.actions import ActionMap
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.off_policy import CrossQSpec, SacSpec, SoftAlgorithm
from operant.spec.settings.optimizers import OptimizerSpec

Critic = Callable[[Tensor], Tensor]


class Actions(ABC):
    """What depends on the kind of action.

    A policy's draw is an action, or the probabilities of all of them; critics are asked about
    `inputs` and answer with outputs [2, B, K].
    """

    policy: Policy
    policy_outputs: int
    critic_inputs: int
    critic_outputs: int

    @abstractmethod
    def draw(self, output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """A draw of the policy with these outputs, and E_a[log pi(a|s)] [B]."""

    @abstractmethod
    def inputs(self, obs: Tensor, drawn: Tensor) -> Tensor:
        """What the critics are asked about a draw, or an action, in each observation."""

    @abstractmethod
    def of_action(self, outputs: Tensor, action: Tensor) -> Tensor:
        """Both critics' values [2, B] of actions that were played."""

    @abstractmethod
    def of_draw(self, outputs: Tensor, drawn: Tensor) -> Tensor:
        """E_a[min_k Q_k(s, a)] [B] under a draw."""

    @abstractmethod
    def target_entropy(self, discrete_share: float) -> float:
        """The entropy that suits these actions: of discrete ones, this share of the largest there is."""

    def taken(self, critic: Critic, obs: Tensor, action: Tensor) -> Tensor:
        """Both critics' values [2, B] of actions that were played."""
        return self.of_action(critic(self.inputs(obs, action)), action)

    def expect(self, output: Tensor, critic: Critic, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """E_a[min_k Q_k(s, a)] and E_a[log pi(a|s)], each [B], under the policy with these outputs."""
        drawn, logp = self.draw(output, noise)
        return self.of_draw(critic(self.inputs(obs, drawn)), drawn), logp


class Squashed(Actions):
    """Real actions in (-1, 1): a = tanh(u), u normal with learnt mean and deviation."""

    def __init__(self, observation: int, size: int) -> None:
        self.policy = SquashedGaussian(size)
        self.policy_outputs = 2 * size
        self.critic_inputs, self.critic_outputs = observation + size, 1
        self._size = size

    def draw(self, output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        return squashed_sample(output, noise)

    def inputs(self, obs: Tensor, drawn: Tensor) -> Tensor:
        return torch.cat((obs, drawn), -1)

    def of_action(self, outputs: Tensor, action: Tensor) -> Tensor:
        return outputs.squeeze(-1)

    def of_draw(self, outputs: Tensor, drawn: Tensor) -> Tensor:
        return outputs.squeeze(-1).amin(0)

    def target_entropy(self, discrete_share: float) -> float:
        return -float(self._size)


class Choice(Actions):
    """Discrete actions: the critics value all of them at once, so expectations are sums."""

    def __init__(self, observation: int, count: int) -> None:
        self.policy = Categorical(count)
        self.policy_outputs = count
        self.critic_inputs, self.critic_outputs = observation, count

    def draw(self, output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(output, -1)
        p = log_p.exp()
        return p, (p * log_p).sum(-1)

    def inputs(self, obs: Tensor, drawn: Tensor) -> Tensor:
        return obs

    def of_action(self, outputs: Tensor, action: Tensor) -> Tensor:
        return outputs.gather(-1, action.expand(2, -1).unsqueeze(-1)).squeeze(-1)

    def of_draw(self, outputs: Tensor, drawn: Tensor) -> Tensor:
        return (drawn * outputs.amin(0)).sum(-1)

    def target_entropy(self, discrete_share: float) -> float:
        return discrete_share * math.log(self.policy_outputs)


class Temperature(nn.Module):
    """The weight alpha of the entropy; where it is learnt, it seeks the target entropy within its bounds."""

    def __init__(self, settings: SoftAlgorithm, optimizer: OptimizerSpec, target_entropy: float, device: torch.device):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((1,), math.log(settings.temperature), device=device))
        self._target = settings.entropy_scale * target_entropy
        # One number needs neither limit nor decay: both are for networks.
        plain = optimizer.model_copy(update={"clip_grad_norm": None, "weight_decay": 0.0})
        self.optimiser = FlatOptimiser(plain, [[self.log_alpha]], [optimizer.lr])
        self._learns = settings.learn_temperature
        bounds = (settings.temperature_min, settings.temperature_max)
        self._least, self._most = (None if bound is None else math.log(bound) for bound in bounds)

    def value(self) -> Tensor:
        """alpha, as a constant."""
        return self.log_alpha.detach().exp()

    def step(self, logp: Tensor) -> None:
        """Raise alpha where the policy's entropy -E[log pi] is below the target, and lower it where above."""
        if not self._learns:
            return
        self.optimiser.step(losses.temperature_loss(self.log_alpha, logp, self._target))
        if self._least is not None or self._most is not None:
            self.log_alpha.detach().clamp_(self._least, self._most)


class SoftLearner(TwinLearner):
    """The policy's and the temperature's share of a gradient step; a subclass teaches its critics."""

    def __init__(self, spec: Spec, settings: SacSpec | CrossQSpec, seeds: Seeds, device: torch.device) -> None:
        super().__init__(spec, settings, seeds, device)
        self.algorithm = settings
        self.actions = actions_for(self.experience.vector.obs_shape, self.experience.vector.actions)
        target_entropy = self.actions.target_entropy(settings.discrete_entropy)
        self.temperature = Temperature(settings, spec.agent.net.optimizer, target_entropy, device)

    @abstractmethod
    def values_and_targets(self, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Both critics' values [2, B] of what was played, and what they should be [B], as constants."""

    def parts(self) -> Mapping[str, codec.Stateful]:
        """What a checkpoint must hold of the temperature."""
        return {
            "temperature": codec.Weights(self.temperature),
            "temperature_optimiser": self.temperature.optimiser,
        }

    def learn(self) -> None:
        """`training_iter` gradient steps."""
        done = self.tracker.frames / self.spec.env.max_frame
        lr = self.policy_optimiser.anneal(done)
        self.critic_optimiser.anneal(done)
        self.temperature.optimiser.anneal(done)
        of_critics: list[Tensor] = []
        of_policy: list[Tensor] = []
        for _ in range(self.algorithm.training_iter):
            self.gradient_step(self.experience.sample(self.actor), of_critics, of_policy)
        self._report(("loss/q", "q/mean", "optim/grad_norm"), of_critics)
        self._report(("loss/policy", "policy/entropy", "policy/temperature"), of_policy)
        self.tracker.add({"optim/lr": lr})

    def _report(self, names: tuple[str, ...], reports: list[Tensor]) -> None:
        if reports:
            self.tracker.add(dict(zip(names, torch.stack(reports).mean(0).tolist(), strict=True)))

    def gradient_step(self, batch: Sample, of_critics: list[Tensor], of_policy: list[Tensor]) -> None:
        """One step of the critics and, when it is due, one each of policy and temperature; adds what to report."""
        alpha = self.temperature.value()
        noise = self.experience.tensor(self.actions.policy.noise(self.rng_noise, (2, len(batch.reward))))
        of_critics.append(torch.stack(self.critic_step(batch, alpha, noise[0])))
        self.tracker.updates += 1
        if self.tracker.updates % self.algorithm.policy_delay == 0:
            loss, logp = self.policy_step(batch, alpha, noise[1])
            self.temperature.step(logp)
            of_policy.append(torch.stack((loss, -logp.mean(), alpha.squeeze())))

    def critic_step(self, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Descend the critics' squared errors; returns loss, mean value and gradient norm."""
        q, target = self.values_and_targets(batch, alpha, noise)
        error = q - target
        loss = losses.weighted_td_loss(error, batch.weight, "mse")
        norm = self.critic_optimiser.step(loss)
        self.experience.learnt(batch, error)
        return loss.detach(), q.detach().mean(), norm

    def policy_step(self, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Descend E[alpha log pi - min_k Q_k]; returns the loss and log pi at each state."""
        q, logp = self.actions.expect(self.policy(batch.obs), self.critic.judge, batch.obs, noise)
        loss = losses.soft_policy_loss(q, logp, alpha)
        self.policy_optimiser.step(loss)
        return loss.detach(), logp.detach()


def actions_for(obs_shape: tuple[int, ...], actions: ActionMap) -> Actions:
    """The kind of action that an action space asks for."""
    return (Choice if actions.discrete else Squashed)(int(np.prod(obs_shape)), actions.size)
