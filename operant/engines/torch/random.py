"""Uniformly random play: a baseline with the rows, episodes, checkpoints and reports of any algorithm.

Nothing is learnt, so evaluations are random as well. Each draws its actions from a stream of its own
seed and of the session's, so that it repeats and yet sessions differ.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from operant.engines.torch.actor import Actor
from operant.engines.torch.checkpoint import Snapshot, Weights
from operant.engines.torch.normalize import ObservationNormalizer
from operant.engines.torch.policies import Uniform
from operant.engines.torch.tracker import Tracker
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.envs.vector.episode_seeds import episode_seeds
from operant.envs.vector.evaluation import Act
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> Luck:
    """No layers, but a number."""
    return Luck()


def build_actor(spec: Spec, net: Luck, obs_shape: tuple[int, ...], actions: ActionMap) -> Actor:
    """The actor that draws among all actions alike, and leaves observations as they are."""
    normalizer = ObservationNormalizer(obs_shape, False, spec.env.clip_obs)
    return RandomActor(net, normalizer, Uniform(actions.size, actions.discrete))


class Random:
    """The player: environments, a seed stream and the counts that must survive a restart."""

    ENGINE = "torch"
    build_net = staticmethod(build_net)
    build_actor = staticmethod(build_actor)

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        self.spec = spec
        self.tracker = Tracker()
        self.vector = AutoresetVectorEnv(spec.env, spec.env.num_envs, episode_seeds(spec, seeds))
        self.net = self.build_net(spec, self.vector.obs_shape, self.vector.actions)
        self.net.luck.fill_(seeds.integer("luck"))
        self.actor = self.build_actor(spec, self.net, self.vector.obs_shape, self.vector.actions)
        self.rng_act = seeds.rng("act")
        self.snapshot = Snapshot(
            policy={"net": Weights(self.net), "obs": self.actor.obs_normalizer},
            learner={"env": self.vector},
            tracker=self.tracker,
            streams={"act": self.rng_act},
        )

    def iterate(self) -> list[Ended]:
        """One step in every environment."""
        vector = self.vector
        ended = vector.step(self.actor.sample(vector.obs, self.rng_act, vector.mask, vector.begun)).ended
        self.tracker.frames += vector.num
        for over in ended:
            self.tracker.ended(over.score, over.length)
        return ended

    def update_counts(self) -> UpdateCounts:
        """Frames alone: there is nothing to learn."""
        return UpdateCounts(
            [f"{self.spec.env.max_frame:,} frames of uniformly random play, no gradient steps"], updates=0
        )


class Luck(nn.Module):
    """What a checkpoint keeps in the place of a network: the number that sets a session's evaluations apart."""

    def __init__(self) -> None:
        super().__init__()
        self.luck = nn.Parameter(torch.zeros((), dtype=torch.int64), requires_grad=False)


class RandomActor(Actor):
    """Draws even where others play greedily: no action is better than another."""

    def __init__(self, net: Luck, normalizer: ObservationNormalizer, policy: Uniform) -> None:
        super().__init__(no_output, normalizer, policy)
        self._net = net

    def player(self, seed: int, greedy: bool = True) -> Act:
        """How to play: by draws of a stream of `seed` and of the session, greedily or not."""
        rng = Seeds(seed).rng("luck", int(self._net.luck))
        return lambda obs, mask, begun: self.sample(obs, rng, mask, begun)


def no_output(obs: np.ndarray) -> np.ndarray:
    """What a policy is told that asks for nothing."""
    return np.empty((len(obs), 0), np.float32)
