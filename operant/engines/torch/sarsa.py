"""SARSA (Rummery and Niranjan, 1994) with a Q-network: on-policy temporal differences.

Each update plays `training_frequency` steps in every environment with exploration, or `training_episodes` whole
episodes, and takes one gradient step towards r + gamma Q(s', a'), where a' is the action that was really played next.
The action that follows the last step is therefore chosen before the update and played after it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.checkpoint import Snapshot, Weights
from operant.engines.torch.q_learning import QLearner
from operant.engines.torch.rollout import At, Rollout, in_one_column
from operant.engines.torch.update_counts import UpdateCounts, episode_update_counts, rollout_update_counts
from operant.envs.vector.autoreset import Ended
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.on_policy import SarsaSpec


class Chosen:
    """The action of each environment that is chosen but not yet played."""

    def __init__(self, action: np.ndarray) -> None:
        self.action = action

    def state(self) -> dict[str, np.ndarray]:
        """Arrays that `restore` takes."""
        return {"action": self.action}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        self.action = state["action"]


class Sarsa(QLearner):
    """The learner: environments, Q-network, optimizer and everything that must survive a restart."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, SarsaSpec)
        super().__init__(spec, spec.agent.algorithm, spec.agent.algorithm.gamma, seeds, device)
        self.algorithm = spec.agent.algorithm
        self.chosen = Chosen(self.choose(self.observe()))
        self.snapshot = Snapshot(
            policy={"net": Weights(self.net), "obs": self.actor.obs_normalizer},
            learner={
                "optimiser": self.optimizer,
                "env": self.vector,
                "reward": self.rewards,
                "chosen": self.chosen,
            },
            tracker=self.tracker,
            streams={"act": self.rng_act},
        )

    def iterate(self) -> list[Ended]:
        """One rollout and the gradient step that it pays for."""
        rollout = self.collect()
        self.tracker.frames += rollout.reward.size
        self.tracker.add(self.update(rollout))
        for over in rollout.ended:
            self.tracker.ended(over.score, over.length)
        return rollout.ended

    def collect(self) -> Rollout:
        """Play `training_frequency` steps in every environment, or its share of the episodes."""
        episodes, num = self.algorithm.training_episodes, self.vector.num
        self.exploration = self.explore_now()
        recorder = Recorder(self)
        if episodes is None:
            for _ in range(self.algorithm.training_frequency):
                recorder.step()
            return recorder.close()
        owed, played = np.full(num, episodes // num), list[np.ndarray]()
        while owed.any():
            played.append(owed > 0)
            owed -= recorder.step(played[-1])
        return in_one_column(recorder.close(), np.stack(played))

    def observe(self, playing: np.ndarray | None = None) -> np.ndarray:
        """What the network sees of the environments now; it enters the statistics of those that played."""
        self.actor.obs_normalizer.update(self.vector.obs if playing is None else self.vector.obs[playing])
        return self.actor.obs_normalizer(self.vector.obs)

    def choose(self, obs: np.ndarray) -> np.ndarray:
        """An action of each environment, with exploration."""
        noise = self.exploration.policy.noise(self.rng_act, (self.vector.num,))
        return self.exploration.policy.sample(self.actor.forward(obs), noise, None, self.vector.mask)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """One descent of the temporal-difference loss over the whole rollout."""
        lr = self.optimizer.anneal(self.tracker.frames / self.spec.env.max_frame)
        obs = self._tensor(np.concatenate([rollout.obs, rollout.last_obs[None]]))
        # A rollout of whole episodes has one column, and behind its last step nothing is read.
        chosen = self.chosen.action[: rollout.reward.shape[1]]
        action = self._tensor(np.concatenate([rollout.action, chosen[None]]))
        value = self._values(obs).gather(-1, action.unsqueeze(-1)).squeeze(-1)
        error = value[:-1] - self.targets(rollout, value[1:].detach())
        loss = losses.weighted_td_loss(error, None, self.algorithm.loss)
        norm = self.optimizer.step(loss)
        self.tracker.updates += 1
        found = torch.stack((loss, value[:-1].mean(), norm)).tolist()
        names = ("loss/q", "q/mean", "optim/grad_norm")
        return dict(zip(names, found, strict=True)) | {"optim/lr": lr} | self.exploration.report

    def _values(self, obs: Tensor) -> Tensor:
        """Action values of observations [T, N, ...]; networks that read images take one axis of them."""
        return self.net(obs) if obs.ndim == 3 else self.net(obs.flatten(0, 1)).unflatten(0, obs.shape[:2])

    @torch.no_grad()
    def targets(self, rollout: Rollout, next_value: Tensor) -> Tensor:
        """r + gamma Q(s', a'), given Q(s', a') of what was played next.

        Where an episode was cut short nothing was played next: there the bootstrap is the value
        that the exploring policy expects of the final observation.
        """
        ahead = next_value.clone()
        cut = [at for at in rollout.final_obs if rollout.truncated[at]]
        if cut:
            finals = np.stack([rollout.final_obs[at] for at in cut])
            q = self.net(self._tensor(self.actor.obs_normalizer(finals)))
            legal = self._tensor(np.stack([rollout.final_mask[at] for at in cut])) if rollout.final_mask else None
            steps, envs = zip(*cut, strict=True)
            ahead[list(steps), list(envs)] = self.exploration.expect(q, mask=legal)
        return losses.q_target(
            self._tensor(rollout.reward), self._tensor(rollout.terminated), ahead, self.algorithm.gamma
        )

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def update_counts(self) -> UpdateCounts:
        """How frames become updates, of one gradient step each."""
        episodes = self.algorithm.training_episodes
        if episodes is not None:
            return episode_update_counts(self.spec, self.tracker, episodes)
        return rollout_update_counts(self.spec, self.algorithm.training_frequency)


class Recorder:
    """Plays with a learner, always choosing one action ahead, and keeps what a rollout consists of."""

    def __init__(self, learner: Sarsa) -> None:
        self._learner = learner
        self._observed, self._actions = [learner.actor.obs_normalizer(learner.vector.obs)], [learner.chosen.action]
        self._reward: list[np.ndarray] = []
        self._terminated: list[np.ndarray] = []
        self._truncated: list[np.ndarray] = []
        self._final_obs: dict[At, np.ndarray] = {}
        self._final_mask: dict[At, np.ndarray] = {}
        self._ended: list[Ended] = []

    def step(self, playing: np.ndarray | None = None) -> np.ndarray:
        """One step in every environment, or only where `playing`; returns where an episode ended."""
        learner, t = self._learner, len(self._reward)
        step = learner.vector.step(self._actions[t], playing)
        over = step.terminated | step.truncated
        learner.rewards.update(step.reward, over, playing)
        self._reward.append(step.reward)
        self._terminated.append(step.terminated)
        self._truncated.append(step.truncated)
        self._final_obs |= {(t, ended.index): step.next_obs[ended.index] for ended in step.ended}
        if step.next_mask is not None:
            self._final_mask |= {(t, ended.index): step.next_mask[ended.index] for ended in step.ended}
        self._ended += step.ended
        self._observed.append(learner.observe(playing))
        self._actions.append(learner.choose(self._observed[-1]))
        return over

    def close(self) -> Rollout:
        """All of it; the action chosen last is left to be played first after the update."""
        learner = self._learner
        learner.chosen.action = self._actions[-1]
        played = np.stack(self._observed[:-1]), np.stack(self._actions[:-1])
        ends = learner.rewards.scaled(np.stack(self._reward)), np.stack(self._terminated), np.stack(self._truncated)
        finals = self._final_obs, self._ended
        return Rollout(*played, *ends, self._observed[-1], *finals, final_mask=self._final_mask)
