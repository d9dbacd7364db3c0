"""What PPO and A2C share: an actor-critic network that plays rollouts and learns from them.

Acting needs only the policy head; values and log-probabilities of a whole rollout are computed
afterwards in one batch, with the very weights that acted. Only where acting costs as much as that
batch, as it does on images, may an algorithm let it compute both (`forward_acting`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch.actor import Actor
from operant.engines.torch.advantages import ReturnScale
from operant.engines.torch.checkpoint import Snapshot, Weights
from operant.engines.torch.distributed import Ranks
from operant.engines.torch.networks.acting import forward_for_acting, hidden_state_of
from operant.engines.torch.networks.cnn import gathered, laid_out
from operant.engines.torch.networks.heads import ActorCritic, PolicyAndValue
from operant.engines.torch.networks.recurrent import RecurrentActorCritic
from operant.engines.torch.networks.twin_critics import critic_net
from operant.engines.torch.normalize import ObservationNormalizer, RewardNormalizer
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.policies import Categorical, DiagonalGaussian, Distribution
from operant.engines.torch.rollout import Rollout, collect, collect_episodes
from operant.engines.torch.tracker import Tracker
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended
from operant.envs.vector.episode_seeds import episode_seeds
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.on_policy import EpisodicAlgorithm


def next_values(
    rollout: Rollout,
    value: np.ndarray,
    value_of: Callable[[np.ndarray, np.ndarray | None], np.ndarray],
    actor: Actor,
) -> np.ndarray:
    """The value of each step's true successor; where an episode was cut short, of its final observation.

    `value` [T, N] are the values of `rollout.obs`; `value_of` gives those of further observations,
    and is given the hidden state before each, where the network is recurrent.
    """
    cut = [at for at in rollout.final_obs if rollout.truncated[at]]
    finals = [actor.obs_normalizer(rollout.final_obs[at][None]) for at in cut]
    before = None
    if rollout.hidden is not None:
        before = np.concatenate([rollout.hidden.last, *(rollout.hidden.final[at][None] for at in cut)])
    ahead = value_of(np.concatenate([rollout.last_obs, *finals]), before)
    num = len(rollout.last_obs)
    successor = np.concatenate([value[1:], ahead[None, :num]])
    for at, final in zip(cut, ahead[num:], strict=True):
        successor[at] = final
    return successor


@dataclass(frozen=True)
class ObservationBatch:
    """What a network reads, in rows: steps [R, ...]; or, where it is recurrent, sequences [N, T, ...].

    `begun` [N, T] then marks the first observations of episodes, and `hidden` [N, H] are the hidden
    states before the first step.
    """

    obs: Tensor
    begun: Tensor | None = None
    hidden: Tensor | None = None

    def __getitem__(self, index: Tensor | slice) -> ObservationBatch:
        """The rows at `index`."""
        if self.begun is None or self.hidden is None:
            if isinstance(index, Tensor) and self.obs.ndim > 2:
                return ObservationBatch(gathered(self.obs, index))
            return ObservationBatch(self.obs[index])
        return ObservationBatch(self.obs[index], self.begun[index], self.hidden[index])


def distribution_for(actions: ActionMap) -> Distribution:
    """The distribution that fits an action space."""
    return Categorical(actions.size) if actions.discrete else DiagonalGaussian(actions.size)


def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap) -> ActorCritic | RecurrentActorCritic:
    """A fresh network for these observations and actions."""
    net, hidden = spec.agent.net, getattr(spec.agent.algorithm, "critic_hidden", None)  # of somebody's own: perhaps not
    kind = RecurrentActorCritic if net.memory else ActorCritic
    return kind(net, obs_shape, actions.size, actions.discrete, critic_net(net, hidden))


def build_actor(
    spec: Spec, net: ActorCritic | RecurrentActorCritic, obs_shape: tuple[int, ...], actions: ActionMap
) -> Actor:
    """The actor that plays `net`, seeing its weights as they are at each call."""
    normalizer = ObservationNormalizer(obs_shape, spec.env.normalize_obs, spec.env.clip_obs)
    forward = forward_for_acting(net.policy_layers()) if isinstance(net, ActorCritic) else hidden_state_of(net)
    return Actor(forward, normalizer, distribution_for(actions), net.log_std)


class OnPolicyLearner(ABC):
    """Environments, network, optimizer and all that must survive a restart; a subclass adds the learning.

    `horizon` is the length of a rollout in steps of each environment, unless the settings ask for whole `episodes`.
    `streams` is the randomness that the subclass uses beside that of acting; `returns` says what the critic's outputs
    mean.
    """

    ENGINE = "torch"
    build_net = staticmethod(build_net)
    build_actor = staticmethod(build_actor)

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
        algorithm = spec.agent.algorithm
        self.episodes = algorithm.training_episodes if isinstance(algorithm, EpisodicAlgorithm) else None
        self.returns = returns
        self.tracker = Tracker()
        self.ranks = Ranks()
        env = self.ranks.vector_env(spec.env, spec.env.num_envs)
        self.vector = AutoresetVectorEnv(spec.env, spec.env.num_envs, episode_seeds(spec, seeds), env=env)
        torch.manual_seed(seeds.integer("init"))
        self.net = self.build_net(spec, self.vector.obs_shape, self.vector.actions).to(device)
        optimizer = spec.agent.net.optimizer
        rates = (optimizer.lr, optimizer.critic_lr or optimizer.lr)
        self.optimizer = FlatOptimizer(optimizer, self.net.parameter_groups(), rates)
        self.optimizer.combine = self.ranks.average
        self.actor = self.build_actor(spec, self.net, self.vector.obs_shape, self.vector.actions)
        self.distribution = distribution_for(self.vector.actions)
        self.rewards = RewardNormalizer(spec.env.num_envs, spec.env.normalize_reward, gamma, spec.env.clip_reward)
        self.forward_acting: PolicyAndValue | None = None
        self.rng_act = seeds.rng("act")
        hidden_state = {} if self.actor.hidden_state is None else {"recall": self.actor.hidden_state}
        self.snapshot = Snapshot(
            policy={"net": Weights(self.net), "obs": self.actor.obs_normalizer},
            learner={
                "optimiser": self.optimizer,
                "env": self.vector,
                "reward": self.rewards,
                "returns": returns,
                **hidden_state,
            },
            tracker=self.tracker,
            streams={"act": self.rng_act, **streams},
        )

    @abstractmethod
    def update(self, rollout: Rollout) -> dict[str, float]:
        """Learn from a rollout of the current policy; returns what to log."""

    @abstractmethod
    def update_counts(self) -> UpdateCounts:
        """What a whole session adds up to."""

    def iterate(self) -> list[Ended]:
        """One rollout and the update that it pays for."""
        self.ranks.begin()
        rollout = self.collect()
        self.tracker.frames += rollout.reward.size
        self.tracker.add(self.update(rollout))
        for over in rollout.ended:
            self.tracker.ended(over.score, over.length)
        return rollout.ended

    def collect(self) -> Rollout:
        """`horizon` steps of every environment, or `episodes` in one column."""
        players = (self.vector, self.actor, self.rewards, self.rng_act)
        if self.episodes is not None:
            return collect_episodes(*players, self.episodes, self.forward_acting)
        return collect(*players, self.horizon, self.forward_acting)

    def observations(self, rollout: Rollout) -> ObservationBatch:
        """What the network reads of a rollout."""
        hidden = rollout.hidden
        if hidden is None:
            return ObservationBatch(laid_out(self.rows(rollout.obs)))
        return ObservationBatch(self.rows(rollout.obs), self.rows(hidden.begun), self.tensor(hidden.start))

    def forward(self, batch: ObservationBatch) -> tuple[Tensor, Tensor]:
        """Policy output and value of each step, in the rows that they were given in."""
        return self.net(batch.obs) if batch.hidden is None else self.net(batch.obs, batch.begun, batch.hidden)

    def rows(self, array: np.ndarray) -> Tensor:
        """An array [T, N, ...] of a rollout as rows to learn from: steps, or sequences of a recurrent network."""
        tensor = self.tensor(array)
        return tensor.flatten(0, 1) if self.actor.hidden_state is None else tensor.transpose(0, 1).contiguous()

    def grid(self, rows: Tensor) -> np.ndarray:
        """Rows [...] of numbers as an array [T, N] of the rollout that they come from."""
        if self.actor.hidden_state is None:
            return rows.cpu().numpy().reshape(-1, self.vector.num if self.episodes is None else 1)
        return np.ascontiguousarray(rows.cpu().numpy().T)

    def next_values(self, rollout: Rollout, value: np.ndarray) -> np.ndarray:
        """The critic's value of each step's true successor, given those of the steps themselves."""
        return next_values(rollout, value, self.value_of, self.actor)

    @torch.no_grad()
    def value_of(self, obs: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """The critic's values of normalized observations; `before` are the hidden states of a recurrent network."""
        if isinstance(self.net, ActorCritic):
            return self.returns.value_of(self.net.value(self.tensor(obs)).cpu().numpy())
        assert self.actor.hidden_state is not None, "a recurrent network acts through its hidden state"
        assert before is not None, "the rollout of a recurrent network has hidden states"
        return self.returns.value_of(self.actor.hidden_state.values(obs, before))

    def legal(self, rollout: Rollout) -> Tensor | None:
        """What was legal at each step of a rollout, in rows; None where all was."""
        return None if rollout.mask is None else self.rows(rollout.mask)

    def tensor(self, array: np.ndarray) -> Tensor:
        """An array on the learner's device."""
        return torch.from_numpy(array).to(self.device)
