"""What SAC, CrossQ and TD3 have in common: experience, a policy, twin critics and an optimiser for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import nn

from operant.engines.torch import codec
from operant.engines.torch.actor import Actor
from operant.engines.torch.arithmetic import Arithmetic
from operant.engines.torch.experience import Experience
from operant.engines.torch.optimise import FlatOptimiser
from operant.engines.torch.twin import Critics
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import Ended
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import Net
from operant.spec.settings.off_policy import TwinAlgorithm


class TwinLearner(ABC):
    """The parts and their order of creation, on which a seed's weights depend; a subclass adds the learning."""

    actor: Actor
    snapshot: codec.Snapshot

    def __init__(self, spec: Spec, settings: TwinAlgorithm, seeds: Seeds, device: torch.device) -> None:
        self.spec = spec
        self.experience = Experience(spec, settings, seeds, device)
        self.tracker = self.experience.tracker
        shape, actions = self.experience.vector.obs_shape, self.experience.vector.actions
        torch.manual_seed(seeds.integer("init"))
        self.policy = self.new_policy(shape, actions).to(device)
        self.critic = self.new_critics(critic_net(spec.agent.net, settings), shape, actions).to(device)
        self.net = nn.ModuleList([self.policy, self.critic])
        optimizer = spec.agent.net.optimizer
        self.policy_optimiser = FlatOptimiser(optimizer, [list(self.policy.parameters())], [optimizer.lr])
        critic_lr = optimizer.critic_lr or optimizer.lr
        self.critic_optimiser = FlatOptimiser(optimizer, [list(self.critic.parameters())], [critic_lr])
        self.rng_noise = seeds.rng("noise")

    @abstractmethod
    def new_policy(self, obs_shape: tuple[int, ...], actions: ActionMap) -> nn.Sequential:
        """A fresh policy for these observations and actions."""

    @abstractmethod
    def new_critics(self, net: Net, obs_shape: tuple[int, ...], actions: ActionMap) -> Critics:
        """Fresh critics of this form for these observations and actions."""

    @abstractmethod
    def learn(self) -> None:
        """One round of gradient steps."""

    def iterate(self) -> list[Ended]:
        """One round of play and learning."""
        ended = self.experience.play(self.actor)
        if not self.experience.warming_up:
            self.learn()
        return ended

    def take_snapshot(self, parts: Mapping[str, codec.Stateful]) -> codec.Snapshot:
        """Everything that must survive a restart: the common parts and these."""
        return codec.Snapshot(
            policy={"net": codec.Weights(self.policy), "obs": self.actor.normaliser},
            learner={
                "critic": codec.Weights(self.critic),
                "policy_optimiser": self.policy_optimiser,
                "critic_optimiser": self.critic_optimiser,
                **parts,
                **self.experience.parts(),
            },
            tracker=self.tracker,
            streams={"noise": self.rng_noise, **self.experience.streams()},
        )

    def arithmetic(self) -> Arithmetic:
        """How frames become gradient steps, and how large the replay will be."""
        return self.experience.arithmetic()


def critic_net(net: Net, settings: TwinAlgorithm) -> Net:
    """The form of the critics: that of the policy, with their own hidden layers where the settings name some."""
    return net if settings.critic_hidden is None else net.model_copy(update={"hidden": settings.critic_hidden})
