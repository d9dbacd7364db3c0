"""PPO with two clip ranges: the ratio may rise further than it may fall ("clip-higher", Yu et al., 2025).

    operant train my_spec.yaml -s agent.algorithm.name=my_algorithm:MyPpo

`MyPpoSettings` are the keys that a spec may have under `agent.algorithm`, and `MyPpo` is the learner. It has its loop,
rollouts, network, checkpoints and evaluation from `OnPolicyLearner`; everything that makes it an algorithm is here.
"""

from __future__ import annotations

import torch
from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.advantages import ReturnScale, gae
from operant.engines.torch.on_policy import OnPolicyLearner, Rollout
from operant.engines.torch.update_counts import UpdateCounts
from operant.run.seeding import Seeds
from operant.spec.fields import free
from operant.spec.schema import Spec
from operant.spec.settings.algorithm import Algorithm


class MyPpoSettings(Algorithm):
    """PPO with a clip range for each direction."""

    # A setting that a fork of a run may change is `free`; one that the checkpoint depends on is `fixed("why")`.
    gamma: float = free(default=0.99, ge=0, le=1, description="Discount of future reward.")
    lam: float = free(default=0.95, ge=0, le=1, description="Lambda of generalised advantage estimation.")
    time_horizon: int = free(default=64, ge=1, le=1_000_000, description="Steps of each environment per update.")
    minibatches: int = free(default=4, ge=1, le=10_000, description="Minibatches of one pass over the samples.")
    training_epoch: int = free(default=4, ge=1, le=1000, description="Passes over the samples of one update.")
    clip_low: float = free(default=0.2, gt=0, lt=1, description="How far the probability ratio may fall.")
    clip_high: float = free(default=0.3, gt=0, le=10, description="How far the probability ratio may rise.")
    entropy_coef: float = free(default=0.01, ge=0, le=10, description="Weight of the entropy bonus.")
    val_loss_coef: float = free(default=0.5, ge=0, le=100, description="Weight of the value loss.")


class MyPpo(OnPolicyLearner):
    """The learner."""

    SETTINGS = MyPpoSettings

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, MyPpoSettings)
        self.algorithm = spec.agent.algorithm
        # All randomness comes from streams of the seed, and is given to the base so that checkpoints keep it.
        self.rng_shuffle = seeds.rng("shuffle")
        streams = {"shuffle": self.rng_shuffle}
        horizon = self.algorithm.time_horizon
        super().__init__(spec, seeds, device, self.algorithm.gamma, horizon, streams, ReturnScale())

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Learn from one rollout [T, N, ...] and return what to log."""
        settings = self.algorithm
        lr = self.optimizer.anneal(self.tracker.frames / self.spec.env.max_frame)
        obs, action = self.observations(rollout), self.rows(rollout.action)
        with torch.no_grad():
            output, value = self.forward(obs)
            old_logp, _ = self.distribution.log_prob_and_entropy(output, action, self.net.log_std)
            values = self.grid(value)
        ahead, ends = self.next_values(rollout, values), (rollout.terminated, rollout.truncated)
        advantages = gae(rollout.reward, values, ahead, *ends, settings.gamma, settings.lam)
        advantage, target = self.rows(advantages), self.rows(advantages + values)
        reports = []
        for _ in range(settings.training_epoch):
            order = torch.from_numpy(self.rng_shuffle.permutation(len(action))).to(self.device)
            for index in order.chunk(settings.minibatches):
                output, value = self.forward(obs[index])
                logp, entropy = self.distribution.log_prob_and_entropy(output, action[index], self.net.log_std)
                policy_loss = self.policy_loss(logp, old_logp[index], losses.standardize(advantage[index]))
                value_loss = losses.value_loss(value, target[index])
                bonus = settings.entropy_coef * entropy.mean()
                norm = self.optimizer.step(policy_loss + settings.val_loss_coef * value_loss - bonus)
                self.tracker.updates += 1
                kl = losses.approximate_kl(logp.detach(), old_logp[index])
                reports.append(
                    torch.stack((policy_loss.detach(), value_loss.detach(), entropy.mean().detach(), kl, norm))
                )
        names = ("loss/policy", "loss/value", "policy/entropy", "policy/kl", "optim/grad_norm")
        return dict(zip(names, torch.stack(reports).mean(0).tolist(), strict=True)) | {"optim/lr": lr}

    def policy_loss(self, logp: Tensor, old_logp: Tensor, advantage: Tensor) -> Tensor:
        """The clipped objective, with a limit of its own on each side of 1."""
        ratio = (logp - old_logp).exp()
        clipped = ratio.clamp(1 - self.algorithm.clip_low, 1 + self.algorithm.clip_high)
        return -torch.min(ratio * advantage, clipped * advantage).mean()

    def update_counts(self) -> UpdateCounts:
        """What `operant check` tells of a whole session."""
        settings, envs = self.algorithm, self.spec.env.num_envs
        rollouts = -(-self.spec.env.max_frame // (envs * settings.time_horizon))
        steps = rollouts * settings.training_epoch * settings.minibatches
        line = f"{rollouts:,} updates ({envs} envs x {settings.time_horizon} steps), {steps:,} gradient steps in all"
        return UpdateCounts([line], updates=steps)
