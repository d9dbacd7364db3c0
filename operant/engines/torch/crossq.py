"""CrossQ (Bhatt et al., 2024): soft actor-critic whose critics need no target networks, read top to bottom.

A gradient step shows the critics what was played, (s, a), and what follows, (s', a'), in one batch:
so both are normalized by the same statistics, and the values of what follows are a target as good
as those of a target network. The policy learns from critics with the running statistics. Policy,
temperature and kinds of action are SAC's.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from operant.engines.torch import losses
from operant.engines.torch.checkpoint import Buffers, Weights
from operant.engines.torch.networks.batch_renorm import RenormCritic
from operant.engines.torch.networks.twin_critics import Critics, TwinCritic, critic_net
from operant.engines.torch.off_policy import OffPolicyCollector, Sample, critic_step
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.sac import (
    CRITIC_METRICS,
    POLICY_METRICS,
    ActionKind,
    Temperature,
    action_kind,
    build_actor,
    build_net,
    policy_step,
)
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.autoreset import Ended
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import Net
from operant.spec.settings.off_policy import CrossQSpec


def build_critics(net: Net, settings: CrossQSpec, kind: ActionKind) -> Critics:
    """Fresh critics for this kind of action, renormalized unless the settings want them plain."""
    form, sizes = critic_net(net, settings.critic_hidden), (kind.critic_inputs, kind.critic_outputs)
    if not settings.batch_renorm:
        return TwinCritic(form, *sizes)
    return RenormCritic(form, *sizes, settings.renorm_momentum, settings.renorm_warm_up)


class CrossQ:
    """The learner: policy, twin critics with batch renormalization, temperature and replay."""

    ENGINE = "torch"
    build_net = staticmethod(build_net)
    build_actor = staticmethod(build_actor)

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, CrossQSpec)
        self.spec = spec
        self.algorithm = settings = spec.agent.algorithm
        self.collector = OffPolicyCollector(spec, settings, seeds, device)
        self.tracker = self.collector.tracker
        shape, actions = self.collector.vector.obs_shape, self.collector.vector.actions
        self.actions = action_kind(shape, actions, settings.critic_reduction)
        torch.manual_seed(seeds.integer("init"))
        self.policy = self.build_net(spec, shape, actions).to(device)
        self.critic = build_critics(spec.agent.net, settings, self.actions).to(device)
        self.net = nn.ModuleList([self.policy, self.critic])
        optimizer = spec.agent.net.optimizer
        self.policy_optimizer = FlatOptimizer(optimizer, [list(self.policy.parameters())], [optimizer.lr])
        critic_lr = optimizer.critic_lr or optimizer.lr
        self.critic_optimizer = FlatOptimizer(optimizer, [list(self.critic.parameters())], [critic_lr])
        target_entropy = self.actions.target_entropy(settings.discrete_entropy)
        self.temperature = Temperature(settings, optimizer, target_entropy, device)
        self.actor = self.build_actor(spec, self.policy, shape, actions)
        self.rng_noise = seeds.rng("noise")
        learner = {
            "critic": Weights(self.critic),
            "policy_optimiser": self.policy_optimizer,
            "critic_optimiser": self.critic_optimizer,
            "statistics": Buffers(self.critic),
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
            q, target = self.values_and_targets(batch, alpha, noise[0])
            critic_metrics.append(critic_step(self.collector, self.critic_optimizer, batch, q, target))
            self.tracker.updates += 1
            if self.tracker.updates % self.algorithm.policy_delay == 0:
                loss, logp = policy_step(self, batch, alpha, noise[1])
                self.temperature.update(logp)
                policy_metrics.append(torch.stack((loss, -logp.mean(), alpha.squeeze())))
        self.tracker.add_means(CRITIC_METRICS, critic_metrics)
        self.tracker.add_means(POLICY_METRICS, policy_metrics)
        self.tracker.add({"optim/lr": lr})

    def values_and_targets(self, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Both critics' values [2, B] and r + gamma (E[Q(s', a')] - alpha E[log pi(a'|s')]), of one pass."""
        actions = self.actions
        with torch.no_grad():
            sample, next_logp = actions.sample(self.policy(batch.next_obs), noise)
            joint = torch.cat((actions.inputs(batch.obs, batch.action), actions.inputs(batch.next_obs, sample)))
        now, after = self.critic(joint).chunk(2, 1)
        next_value = actions.q_expected(after.detach(), sample) - alpha * next_logp
        target = losses.q_target(batch.reward, batch.terminated, next_value, self.algorithm.gamma)
        return actions.q_taken(now, batch.action), target

    def update_counts(self) -> UpdateCounts:
        """How frames become gradient steps, and how large the replay will be."""
        return self.collector.update_counts()
