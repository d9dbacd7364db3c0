"""SARSA (Rummery and Niranjan, 1994) with a Q-network: on-policy temporal differences.

Each update plays `training_frequency` steps in every environment with exploration and takes one
gradient step towards r + gamma Q(s', a'), where a' is the action that was really played next. The
action that follows the last step is therefore chosen before the update and played after it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.checkpoint import Snapshot, Weights
from operant.engines.torch.on_policy import Rollout
from operant.engines.torch.q_learning import QLearner
from operant.engines.torch.update_counts import UpdateCounts, rollout_update_counts
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
        self.chosen = Chosen(self._choose(self._observe()))
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
        """Play `training_frequency` steps in every environment, always choosing one action ahead."""
        steps, num = self.algorithm.training_frequency, self.vector.num
        self.exploration = self.explore_now()
        observed, actions = [self.actor.obs_normalizer(self.vector.obs)], [self.chosen.action]
        reward = np.empty((steps, num), np.float32)
        terminated, truncated = np.empty((steps, num), bool), np.empty((steps, num), bool)
        final_obs: dict[tuple[int, int], np.ndarray] = {}
        final_mask: dict[tuple[int, int], np.ndarray] = {}
        ended: list[Ended] = []
        for t in range(steps):
            step = self.vector.step(actions[t])
            self.rewards.update(step.reward, step.terminated | step.truncated)
            reward[t], terminated[t], truncated[t] = step.reward, step.terminated, step.truncated
            final_obs |= {(t, over.index): step.next_obs[over.index] for over in step.ended}
            if step.next_mask is not None:
                final_mask |= {(t, over.index): step.next_mask[over.index] for over in step.ended}
            ended += step.ended
            observed.append(self._observe())
            actions.append(self._choose(observed[-1]))
        self.chosen.action = actions[-1]
        played = np.stack(observed[:-1]), np.stack(actions[:-1])
        ends = self.rewards.scaled(reward), terminated, truncated
        return Rollout(*played, *ends, observed[-1], final_obs, ended, final_mask=final_mask)

    def _observe(self) -> np.ndarray:
        self.actor.obs_normalizer.update(self.vector.obs)
        return self.actor.obs_normalizer(self.vector.obs)

    def _choose(self, obs: np.ndarray) -> np.ndarray:
        noise = self.exploration.policy.noise(self.rng_act, (self.vector.num,))
        return self.exploration.policy.sample(self.actor.forward(obs), noise, None, self.vector.mask)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """One descent of the temporal-difference loss over the whole rollout."""
        lr = self.optimizer.anneal(self.tracker.frames / self.spec.env.max_frame)
        obs = self._tensor(np.concatenate([rollout.obs, rollout.last_obs[None]]))
        action = self._tensor(np.concatenate([rollout.action, self.chosen.action[None]]))
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
        return rollout_update_counts(self.spec, self.algorithm.training_frequency)
