"""Self-imitation learning (Oh et al., 2018) on top of A2C and PPO, read top to bottom.

After each on-policy update, a few gradient steps make those past actions more probable whose return
was better than the critic now expects. What is kept are the steps of whole episodes with their
discounted returns R; those of an episode that goes on wait until it is over. A cut episode has no
end of its own: there R goes on with the critic's value of the final observation, as it then was.
Where rewards are normalized, R is kept unscaled, and measured by the deviation of the time when it is used.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.a2c import A2c
from operant.engines.torch.advantages import monte_carlo_returns
from operant.engines.torch.buffers.replay import Ring
from operant.engines.torch.networks.cnn import laid_out
from operant.engines.torch.on_policy import ObservationBatch, OnPolicyLearner
from operant.engines.torch.ppo import Ppo
from operant.engines.torch.rollout import Rollout
from operant.engines.torch.update_counts import UpdateCounts
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.memories import PrioritisedReplaySpec
from operant.spec.settings.ppo import ImitatingAlgorithm


class Imitation:
    """A learner's past, and the gradient steps that imitate the best of it."""

    def __init__(self, learner: OnPolicyLearner, seeds: Seeds, gamma: float) -> None:
        algorithm, memory = learner.spec.agent.algorithm, learner.spec.agent.memory
        assert isinstance(algorithm, ImitatingAlgorithm)
        assert memory is not None, "the schema gives every imitating algorithm a memory"
        self.learner, self.algorithm, self.memory, self.gamma = learner, algorithm, memory, gamma
        learner.rewards.replayed = True
        self.rng = seeds.rng("imitate")
        kept = {"obs": learner.actor.obs_normalizer(learner.vector.obs)[0], "action": _action(learner)}
        if learner.vector.mask is not None:
            kept["mask"] = learner.vector.mask[0]
        one = np.zeros((), np.float32)
        self.open_episodes = OpenEpisodes(
            learner.vector.num, {k: _rows(0, v) for k, v in {**kept, "reward": one}.items()}
        )
        self.replay = Ring(memory, {k: _rows(memory.max_size, v) for k, v in {**kept, "returns": one}.items()})
        learner.snapshot = learner.snapshot.joined(
            {"unfinished": self.open_episodes, "replay": self.replay}, {"imitate": self.rng}
        )

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """Store the episodes that the rollout ended, then imitate; nothing while the memory lacks a batch."""
        self.store(rollout)
        if self.replay.filled < self.memory.batch_size:
            return {}
        beta = 0.0
        if isinstance(self.memory, PrioritisedReplaySpec):
            beta = value_at(self.memory.beta, self.learner.tracker.frames)
        reports = [self.gradient_step(*self.replay.draw(self.rng, beta)) for _ in range(self.algorithm.sil_iter)]
        names = ("loss/sil_policy", "loss/sil_value", "sil/share")
        return dict(zip(names, torch.stack(reports).mean(0).tolist(), strict=True))

    def store(self, rollout: Rollout) -> None:
        """Steps [T, N] go to their environments' episodes, and ended episodes to the replay."""
        over = rollout.terminated | rollout.truncated
        unscaled = rollout.reward * np.float32(self.learner.rewards.deviation)
        columns: Rows = {"obs": rollout.obs, "action": rollout.action, "reward": unscaled}
        if rollout.mask is not None:
            columns["mask"] = rollout.mask
        for env in range(over.shape[1]):
            start = 0
            for end in np.flatnonzero(over[:, env]).tolist():
                self.open_episodes.extend(env, {k: v[start : end + 1, env] for k, v in columns.items()})
                self.keep(self.open_episodes.close(env), self.value_after(rollout, end, env))
                start = end + 1
            self.open_episodes.extend(env, {k: v[start:, env] for k, v in columns.items()})

    def value_after(self, rollout: Rollout, step: int, env: int) -> float:
        """What the critic expects after an episode's last step, unscaled: nothing, unless it was cut short."""
        if rollout.terminated[step, env]:
            return 0.0
        final = self.learner.actor.obs_normalizer(rollout.final_obs[step, env][None])
        return float(self.learner.value_of(final)[0]) * self.learner.rewards.deviation

    def keep(self, episode: Rows, value_after: float) -> None:
        """Put an episode into the replay, each step with its return; of a very long one, the last steps."""
        returns = episode_returns(episode.pop("reward"), value_after, self.gamma)
        size = self.memory.max_size
        self.replay.add(**{name: array[-size:] for name, array in {**episode, "returns": returns}.items()})

    def gradient_step(self, index: np.ndarray, weight: np.ndarray | None) -> Tensor:
        """Descend both losses on the past steps at `index`, and give these their new priorities (R - V)_+."""
        learner, rows = self.learner, self.replay.take(index)
        obs, action = ObservationBatch(laid_out(learner.tensor(rows["obs"]))), learner.tensor(rows["action"])
        mask = learner.tensor(rows["mask"]) if "mask" in rows else None
        weights = None if weight is None else learner.tensor(weight)
        output, critic = learner.forward(obs)
        logp, _ = learner.distribution.log_prob_and_entropy(output, action, learner.net.log_std, mask)
        returns = rows["returns"] / np.float32(learner.rewards.deviation)
        gain = np.maximum(returns - learner.returns.value_of(critic.detach().cpu().numpy()), 0)
        target = learner.tensor(learner.returns.output_of(returns))
        policy_loss = losses.imitation_policy_loss(logp, learner.tensor(gain), weights)
        value_loss = losses.imitation_value_loss(critic, target, weights)
        settings = self.algorithm
        learner.optimizer.step(settings.sil_policy_coef * policy_loss + settings.sil_value_coef * value_loss)
        learner.tracker.updates += 1
        if self.replay.priorities is not None:
            self.replay.priorities.update(index, gain)
        share = learner.tensor(np.array((gain > 0).mean(), np.float32))
        return torch.stack((policy_loss, value_loss, share)).detach()

    def update_counts(self, own: UpdateCounts) -> UpdateCounts:
        """That of the on-policy algorithm, and the steps of imitation that are added to it."""
        spec, settings, memory = self.learner.spec, self.algorithm, self.memory
        rollouts = -(-spec.env.max_frame // (spec.env.num_envs * self.learner.horizon))
        # Of whole episodes the learner itself counts them all.
        added = rollouts * settings.sil_iter if self.learner.episodes is None else 0
        line = (
            f"after each update: {settings.sil_iter} gradient steps of {memory.batch_size} past steps,"
            f" {f'{added:,} in all' if added else 'counted above'};"
            f" replay of {memory.max_size:,} steps of whole episodes"
        )
        full = self.replay.nbytes * min(spec.env.max_frame, memory.max_size) // memory.max_size
        held = self.replay.nbytes * self.replay.filled // memory.max_size
        return replace(own, lines=[*own.lines, line], updates=own.updates + added, growth=full - held)


class Sil(A2c):
    """A2C, followed by imitation."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        super().__init__(spec, seeds, device)
        self.imitation = Imitation(self, seeds, self.algorithm.gamma)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """One gradient step on the rollout, then those on the past."""
        return super().update(rollout) | self.imitation.learn(rollout)

    def update_counts(self) -> UpdateCounts:
        """How frames become gradient steps of both kinds."""
        return self.imitation.update_counts(super().update_counts())


class PpoSil(Ppo):
    """PPO, followed by imitation."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        super().__init__(spec, seeds, device)
        self.imitation = Imitation(self, seeds, self.algorithm.gamma)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Epochs of minibatches of the rollout, then steps on the past."""
        return super().update(rollout) | self.imitation.learn(rollout)

    def update_counts(self) -> UpdateCounts:
        """How frames become gradient steps of both kinds."""
        return self.imitation.update_counts(super().update_counts())


def episode_returns(reward: np.ndarray, value_after: float, gamma: float) -> np.ndarray:
    """R_t = r_t + gamma R_(t+1) of one episode [T], which goes on with `value_after` behind its last step."""
    goes_on = np.append(reward, np.asarray(value_after, reward.dtype))
    return monte_carlo_returns(goes_on[:, None], np.zeros((len(goes_on), 1), bool), gamma)[:-1, 0]


def _action(learner: OnPolicyLearner) -> np.ndarray:
    """One action, as rollouts have them."""
    actions = learner.vector.actions
    return np.zeros((), np.int64) if actions.discrete else np.zeros(actions.size, np.float32)


def _rows(count: int, like: np.ndarray) -> np.ndarray:
    return np.zeros((count, *like.shape), like.dtype)


Rows = dict[str, np.ndarray]


class OpenEpisodes:
    """For each environment, the steps of its current episode; `empty` are the arrays of no steps at all."""

    def __init__(self, num: int, empty: Rows) -> None:
        self._empty = empty
        self._parts: list[list[Rows]] = [[] for _ in range(num)]

    def extend(self, env: int, rows: Rows) -> None:
        """Add the steps that were played next."""
        self._parts[env].append({name: array.copy() for name, array in rows.items()})

    def close(self, env: int) -> Rows:
        """All steps of the episode, which is over."""
        whole = self._joined(self._parts[env])
        self._parts[env] = []
        return whole

    def _joined(self, parts: list[Rows]) -> Rows:
        return {name: np.concatenate([none, *(part[name] for part in parts)]) for name, none in self._empty.items()}

    def state(self) -> Rows:
        """The steps of all environments in a row, and how many each has."""
        episodes = [self._joined(parts) for parts in self._parts]
        first = next(iter(self._empty))
        return self._joined(episodes) | {"length": np.array([len(episode[first]) for episode in episodes])}

    def restore(self, state: Rows) -> None:
        """Take back what `state` gave."""
        ends = np.cumsum(state["length"])
        for env, (start, end) in enumerate(zip(ends - state["length"], ends, strict=True)):
            self._parts[env] = [{name: state[name][start:end] for name in self._empty}]
