"""What PPO and A2C have in common: one network with a policy and a value, and rollouts to learn from.

Acting needs only the policy head; values and log-probabilities of a whole rollout are computed
afterwards in one batch, with the very weights that acted. Only where acting costs as much as that
batch, as it does on images, may an algorithm let it compute both (`judge_acting`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch import codec
from operant.engines.torch.actor import Actor
from operant.engines.torch.arithmetic import Arithmetic
from operant.engines.torch.episode_seeds import episode_seeds
from operant.engines.torch.nets import ActorCritic, Judge, forward_for_acting
from operant.engines.torch.normalise import ObservationNormaliser, RewardNormaliser
from operant.engines.torch.optimise import FlatOptimiser
from operant.engines.torch.parallel import Ranks
from operant.engines.torch.policies import Categorical, DiagonalGaussian, Distribution
from operant.engines.torch.recall import recall_of
from operant.engines.torch.recurrent import RecurrentActorCritic
from operant.engines.torch.return_scale import ReturnScale
from operant.engines.torch.rollout import Rollout, collect, next_values
from operant.engines.torch.tracker import Tracker
from operant.engines.torch.vision import gathered, laid_out
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


@dataclass(frozen=True)
class Seen:
    """What a network reads, in rows: steps [R, ...]; or, where it remembers, sequences [N, T, ...].

    `begun` [N, T] then marks the first observations of episodes, and `memory` [N, M] is what was
    remembered before the first step.
    """

    obs: Tensor
    begun: Tensor | None = None
    memory: Tensor | None = None

    def __getitem__(self, index: Tensor | slice) -> Seen:
        """The rows at `index`."""
        if self.begun is None or self.memory is None:
            if isinstance(index, Tensor) and self.obs.ndim > 2:
                return Seen(gathered(self.obs, index))
            return Seen(self.obs[index])
        return Seen(self.obs[index], self.begun[index], self.memory[index])


class ActorCriticLearner(ABC):
    """Environments, network, optimiser and all that must survive a restart; a subclass adds the learning.

    `horizon` is the length of a rollout in steps of each environment, and `streams` is the
    randomness that the subclass uses beside that of acting; `returns` says what the critic's outputs mean.
    """

    def __init__(
        self,
        spec: Spec,
        seeds: Seeds,
        device: torch.device,
        gamma: float,
        horizon: int,
        streams: Mapping[str, np.random.Generator],
        returns: ReturnScale,
    ) -> None:
        self.spec = spec
        self.device = device
        self.horizon = horizon
        self.returns = returns
        self.tracker = Tracker()
        self.ranks = Ranks()
        env = self.ranks.vector_env(spec.env, spec.env.num_envs)
        self.vector = AutoresetVectorEnv(spec.env, spec.env.num_envs, episode_seeds(spec, seeds), env=env)
        torch.manual_seed(seeds.integer("init"))
        self.net = build_net(spec, self.vector.obs_shape, self.vector.actions).to(device)
        optimizer = spec.agent.net.optimizer
        rates = (optimizer.lr, optimizer.critic_lr or optimizer.lr)
        self.optimiser = FlatOptimiser(optimizer, self.net.parameter_groups(), rates)
        self.optimiser.combine = self.ranks.average
        self.actor = build_actor(spec, self.net, self.vector.obs_shape, self.vector.actions)
        self.distribution = distribution_for(self.vector.actions)
        self.rewards = RewardNormaliser(spec.env.num_envs, spec.env.normalize_reward, gamma, spec.env.clip_reward)
        self.judge_acting: Judge | None = None
        self.rng_act = seeds.rng("act")
        recall = {} if self.actor.recall is None else {"recall": self.actor.recall}
        self.snapshot = codec.Snapshot(
            policy={"net": codec.Weights(self.net), "obs": self.actor.normaliser},
            learner={
                "optimiser": self.optimiser,
                "env": self.vector,
                "reward": self.rewards,
                "returns": returns,
                **recall,
            },
            tracker=self.tracker,
            streams={"act": self.rng_act, **streams},
        )

    @abstractmethod
    def update(self, rollout: Rollout) -> dict[str, float]:
        """Learn from a rollout of the current policy; returns what to log."""

    @abstractmethod
    def arithmetic(self) -> Arithmetic:
        """What a whole session adds up to."""

    def iterate(self) -> list[Ended]:
        """One rollout and the update that it pays for."""
        self.ranks.begin()
        rollout = collect(self.vector, self.actor, self.rewards, self.rng_act, self.horizon, self.judge_acting)
        self.tracker.frames += rollout.reward.size
        self.tracker.add(self.update(rollout))
        for over in rollout.ended:
            self.tracker.ended(over.score, over.length)
        return rollout.ended

    def seen(self, rollout: Rollout) -> Seen:
        """What the network reads of a rollout."""
        kept = rollout.remembered
        if kept is None:
            return Seen(laid_out(self.rows(rollout.obs)))
        return Seen(self.rows(rollout.obs), self.rows(kept.begun), self.tensor(kept.start))

    def judge(self, seen: Seen) -> tuple[Tensor, Tensor]:
        """Policy output and value of each step, in the rows that they were given in."""
        return self.net(seen.obs) if seen.memory is None else self.net(seen.obs, seen.begun, seen.memory)

    def rows(self, array: np.ndarray) -> Tensor:
        """An array [T, N, ...] of a rollout as rows to learn from: steps, or sequences of a recurrent network."""
        tensor = self.tensor(array)
        return tensor.flatten(0, 1) if self.actor.recall is None else tensor.transpose(0, 1).contiguous()

    def grid(self, rows: Tensor) -> np.ndarray:
        """Rows [...] of numbers as an array [T, N] of the rollout that they come from."""
        if self.actor.recall is None:
            return rows.cpu().numpy().reshape(self.horizon, -1)
        return np.ascontiguousarray(rows.cpu().numpy().T)

    def next_values(self, rollout: Rollout, value: np.ndarray) -> np.ndarray:
        """The critic's value of each step's true successor, given those of the steps themselves."""
        return next_values(rollout, value, self.value_of, self.actor)

    @torch.no_grad()
    def value_of(self, obs: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """The critic's values of normalised observations; `before` is what a recurrent network then remembers."""
        if isinstance(self.net, ActorCritic):
            return self.returns.value_of(self.net.value(self.tensor(obs)).cpu().numpy())
        assert self.actor.recall is not None, "a recurrent network acts through its memory"
        assert before is not None, "the rollout of a recurrent network remembers"
        return self.returns.value_of(self.actor.recall.foresee(obs, before))

    def legal(self, rollout: Rollout) -> Tensor | None:
        """What was legal at each step of a rollout, in rows; None where all was."""
        return None if rollout.mask is None else self.rows(rollout.mask)

    def tensor(self, array: np.ndarray) -> Tensor:
        """An array on the learner's device."""
        return torch.from_numpy(array).to(self.device)


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> ActorCritic | RecurrentActorCritic:
    """A fresh network for these observations and actions."""
    kind = RecurrentActorCritic if spec.agent.net.memory else ActorCritic
    return kind(spec.agent.net, obs_shape, actions.size, actions.discrete)


def build_actor(
    spec: Spec, net: ActorCritic | RecurrentActorCritic, obs_shape: tuple[int, ...], actions: ActionMap
) -> Actor:
    """The actor that plays `net`, seeing its weights as they are at each call."""
    normaliser = ObservationNormaliser(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    forward = forward_for_acting(net.policy_layers()) if isinstance(net, ActorCritic) else recall_of(net)
    return Actor(forward, normaliser, distribution_for(actions), net.log_std)


def distribution_for(actions: ActionMap) -> Distribution:
    """The distribution that fits an action space."""
    return Categorical(actions.size) if actions.discrete else DiagonalGaussian(actions.size)
