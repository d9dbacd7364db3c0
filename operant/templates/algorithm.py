"""An algorithm of my own: a policy gradient with a learnt baseline, and a limit on how far one update may go.

    operant check --contract my_algorithm:MyAlgorithm    does it keep what Operant promises?
    operant train my_algorithm.yaml                      trains it
    operant help algorithm my_algorithm:MyAlgorithm      its settings

In a spec it is named by its module and class (agent.algorithm.name: my_algorithm:MyAlgorithm), beside its settings.
It has its loop, rollouts, network, checkpoints and evaluation from `OnPolicyLearner`; what makes it an algorithm is
here. To begin with another family, see operant/engines/torch/dqn.py, sac.py and reinforce.py.
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


class MyAlgorithmSettings(Algorithm):
    """PPO's clipped objective, over a few passes of all samples at once."""

    # The keys that a spec may have under `agent.algorithm`. A setting that a fork of a run may change is `free`; one
    # that the checkpoint depends on is `fixed("why", ...)`. RESUME = "warm" if a resumed run only has to finish.
    gamma: float = free(default=0.99, ge=0, le=1, description="Discount of future reward.")
    lam: float = free(default=0.95, ge=0, le=1, description="Lambda of generalised advantage estimation.")
    time_horizon: int = free(default=64, ge=1, le=1_000_000, description="Steps of each environment per update.")
    training_epoch: int = free(default=4, ge=1, le=1000, description="Gradient steps on the samples of one update.")
    clip_eps: float = free(default=0.2, gt=0, lt=1, description="How far the probability ratio may move.")
    entropy_coef: float = free(default=0.01, ge=0, le=10, description="Weight of the entropy bonus.")
    val_loss_coef: float = free(default=0.5, ge=0, le=100, description="Weight of the value loss.")


class MyAlgorithm(OnPolicyLearner):
    """The learner."""

    SETTINGS = MyAlgorithmSettings

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, MyAlgorithmSettings)
        self.algorithm = spec.agent.algorithm
        # Randomness of your own: take `seeds.rng("a name")` and put it in `streams`, so that checkpoints keep it.
        streams = {}
        super().__init__(spec, seeds, device, self.algorithm.gamma, self.algorithm.time_horizon, streams, ReturnScale())

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Learn from one rollout [T, N, ...]; returns what the metrics will show."""
        settings = self.algorithm
        lr = self.optimizer.anneal(self.tracker.frames / self.spec.env.max_frame)
        obs, action = self.observations(rollout), self.rows(rollout.action)
        with torch.no_grad():
            output, value = self.forward(obs)
            old_logp, _ = self.distribution.log_prob_and_entropy(output, action, self.net.log_std)
            values = self.grid(value)
        ahead = self.next_values(rollout, values)
        ends = (rollout.terminated, rollout.truncated)
        advantages = gae(rollout.reward, values, ahead, *ends, settings.gamma, settings.lam)
        advantage, target = losses.standardize(self.rows(advantages)), self.rows(advantages + values)
        for _ in range(settings.training_epoch):
            output, value = self.forward(obs)
            logp, entropy = self.distribution.log_prob_and_entropy(output, action, self.net.log_std)
            policy_loss = self.policy_loss(logp, old_logp, advantage)
            value_loss = losses.value_loss(value, target)
            bonus = settings.entropy_coef * entropy.mean()
            norm = self.optimizer.step(policy_loss + settings.val_loss_coef * value_loss - bonus)
            self.tracker.updates += 1
        names = ("loss/policy", "loss/value", "policy/entropy", "optim/grad_norm")
        report = torch.stack((policy_loss, value_loss, entropy.mean(), norm)).tolist()
        return dict(zip(names, report, strict=True)) | {"optim/lr": lr}

    def policy_loss(self, logp: Tensor, old_logp: Tensor, advantage: Tensor) -> Tensor:
        """The clipped objective: change this line, and you have an algorithm of your own."""
        ratio = (logp - old_logp).exp()
        clipped = ratio.clamp(1 - self.algorithm.clip_eps, 1 + self.algorithm.clip_eps)
        return -torch.min(ratio * advantage, clipped * advantage).mean()

    def update_counts(self) -> UpdateCounts:
        """What `operant check` tells of a whole session."""
        settings, envs = self.algorithm, self.spec.env.num_envs
        rollouts = -(-self.spec.env.max_frame // (envs * settings.time_horizon))
        steps = rollouts * settings.training_epoch
        line = f"{rollouts:,} updates ({envs} envs x {settings.time_horizon} steps), {steps:,} gradient steps in all"
        return UpdateCounts([line], updates=steps)
