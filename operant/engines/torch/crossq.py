"""CrossQ (Bhatt et al., 2024): soft actor-critic whose critics need no slow copies to learn from.

A gradient step shows the critics what was played, (s, a), and what follows, (s', a'), in one batch:
so both are normalised by the same statistics, and the values of what follows are a target as good
as those of a target network. The policy is judged with the running statistics.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from operant.engines.torch import codec, losses
from operant.engines.torch.experience import Sample
from operant.engines.torch.renorm import RenormCritic
from operant.engines.torch.sac import build_actor, build_net
from operant.engines.torch.soft import SoftLearner, actions_for
from operant.envs.vector.actions import ActionMap
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import Net
from operant.spec.settings.off_policy import CrossQSpec


class CrossQ(SoftLearner):
    """The learner: a soft learner whose critics renormalise and learn from themselves."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, CrossQSpec)
        super().__init__(spec, spec.agent.algorithm, seeds, device)
        self.actor = build_actor(spec, self.policy, self.experience.vector.obs_shape, self.experience.vector.actions)
        self.snapshot = self.take_snapshot({"statistics": codec.Buffers(self.critic), **self.parts()})

    def new_policy(self, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
        return build_net(self.spec, obs_shape, actions)

    def new_critics(self, net: Net, obs_shape: tuple[int, ...], actions: ActionMap) -> RenormCritic:
        kind, settings = actions_for(obs_shape, actions), self.spec.agent.algorithm
        assert isinstance(settings, CrossQSpec)
        sizes = (kind.critic_inputs, kind.critic_outputs)
        return RenormCritic(net, *sizes, settings.renorm_momentum, settings.renorm_warm_up)

    def values_and_targets(self, batch: Sample, alpha: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Of one pass: both values, and r + gamma (E[min_k Q_k(s', a')] - alpha E[log pi(a'|s')])."""
        actions = self.actions
        with torch.no_grad():
            drawn, next_logp = actions.draw(self.policy(batch.next_obs), noise)
            asked = torch.cat((actions.inputs(batch.obs, batch.action), actions.inputs(batch.next_obs, drawn)))
        now, after = self.critic(asked).chunk(2, 1)
        ahead = actions.of_draw(after.detach(), drawn) - alpha * next_logp
        target = losses.q_target(batch.reward, batch.terminated, ahead, self.algorithm.gamma)
        return actions.of_action(now, batch.action), target
