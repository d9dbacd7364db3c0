"""Deep Q-learning (Mnih et al., 2015) with Double, n-step and quantile targets, duelling and prioritised replay.

A round plays with exploration until `training_frequency` frames are reached, stores them, and takes
`training_iter` gradient steps towards r + gamma Q'(s', a*).
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from operant.engines.torch import losses
from operant.engines.torch.buffers.replay import Batch
from operant.engines.torch.checkpoint import Snapshot, Weights
from operant.engines.torch.networks.heads import QuantileNet
from operant.engines.torch.off_policy import Storage, replay_update_counts, steps_to_round
from operant.engines.torch.policies import ILLEGAL
from operant.engines.torch.q_learning import QLearner
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.autoreset import Ended
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec
from operant.spec.settings.memories import PrioritisedReplaySpec


class Dqn(QLearner):
    """The learner: environments, replay, two networks and everything that must survive a restart."""

    def __init__(self, spec: Spec, seeds: Seeds, device: torch.device) -> None:
        assert isinstance(spec.agent.algorithm, DqnSpec)
        assert spec.agent.memory is not None, "the schema gives every off-policy algorithm a memory"
        super().__init__(spec, spec.agent.algorithm, spec.agent.algorithm.gamma, seeds, device, replayed=True)
        self.algorithm = spec.agent.algorithm
        self.memory = spec.agent.memory
        self.target = copy.deepcopy(self.net).requires_grad_(False)
        self.quantiles = self.algorithm.distributional == "qr"
        self.storage = Storage(self.memory, self.vector, self.algorithm.n_step, self.algorithm.gamma, masks=True)
        self.replay = self.storage.replay
        lookahead = self.storage.lookahead
        self.rng_sample = seeds.rng("sample")
        self.snapshot = Snapshot(
            policy={"net": Weights(self.net), "obs": self.actor.obs_normalizer},
            learner={
                "target": Weights(self.target),
                "optimiser": self.optimizer,
                "env": self.vector,
                "reward": self.rewards,
                "replay": self.replay,
                **({"lookahead": lookahead} if lookahead is not None else {}),
            },
            tracker=self.tracker,
            streams={"act": self.rng_act, "sample": self.rng_sample},
        )

    def iterate(self) -> list[Ended]:
        """One round of play and learning."""
        before = self.tracker.frames
        ended = self.collect()
        for over in ended:
            self.tracker.ended(over.score, over.length)
        if self.tracker.frames >= self.algorithm.training_start:
            self.learn(before)
        return ended

    def collect(self) -> list[Ended]:
        """Play to the next round of gradient steps, and store and count the frames."""
        num = self.vector.num
        steps = steps_to_round(self.tracker.frames, self.algorithm.training_frequency, num)
        self.exploration = self.explore_now()
        noise = self.exploration.policy.noise(self.rng_act, (steps, num))
        ended: list[Ended] = []
        for t in range(steps):
            obs = self.vector.obs
            self.actor.obs_normalizer.update(obs)
            scores = self.actor.forward(self.actor.obs_normalizer(obs))
            action = self.exploration.policy.sample(scores, noise[t], None, self.vector.mask)
            step = self.vector.step(action)
            self.rewards.update(step.reward, step.terminated | step.truncated)
            self.storage.add(obs, action, self.rewards.kept(step.reward), step)
            ended += step.ended
        self.tracker.frames += steps * num
        return ended

    def learn(self, before: int) -> None:
        """`training_iter` gradient steps, then the target network if it is due since the frame `before`."""
        frame = self.tracker.frames
        lr = self.optimizer.anneal(frame / self.spec.env.max_frame)
        beta = value_at(self.memory.beta, frame) if isinstance(self.memory, PrioritisedReplaySpec) else 0.0
        reports = [
            self.gradient_step(self.replay.sample(self.rng_sample, beta)) for _ in range(self.algorithm.training_iter)
        ]
        self._update_target(before, frame)
        loss, q, norm = torch.stack(reports).mean(0).tolist()
        found = {"loss/q": loss, "q/mean": q, "optim/grad_norm": norm, "optim/lr": lr}
        self.tracker.add(found | self.explore_now().report)

    def gradient_step(self, batch: Batch) -> Tensor:
        """Descend the temporal-difference loss of one batch, and tell the replay the new errors."""
        chosen, error, loss = self.quantile_errors(batch) if self.quantiles else self.errors(batch)
        norm = self.optimizer.step(loss)
        self.tracker.updates += 1
        if self.replay.priorities is not None:
            self.replay.priorities.update(batch.index, error.detach().cpu().numpy())
        return torch.stack((loss.detach(), chosen.detach().mean(), norm))

    def errors(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Values of the actions played, their temporal-difference errors, and the loss."""
        obs = self._tensor(self.actor.obs_normalizer(batch.obs))
        action = self._tensor(batch.action).unsqueeze(-1)
        chosen = self.net(obs).gather(-1, action).squeeze(-1)
        error = chosen - self.targets(batch)
        weight = None if batch.weight is None else self._tensor(batch.weight)
        return chosen, error, losses.weighted_td_loss(error, weight, self.algorithm.loss)

    def quantile_errors(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The same of quantiles, whose errors are each transition's loss."""
        assert isinstance(self.net, QuantileNet)
        obs = self._tensor(self.actor.obs_normalizer(batch.obs))
        chosen = quantiles_of(self.net.quantiles(obs), self._tensor(batch.action))
        error = losses.quantile_huber_loss(chosen, self.quantile_targets(batch))
        weighted = error if batch.weight is None else error * self._tensor(batch.weight)
        return chosen.mean(-1), error, weighted.mean()

    @torch.no_grad()
    def quantile_targets(self, batch: Batch) -> Tensor:
        """r + gamma theta'_j(s', a*) for each quantile j, with a* as in `targets`."""
        assert isinstance(self.target, QuantileNet)
        next_obs = self._tensor(self.actor.obs_normalizer(batch.next_obs))
        after = self.target.quantiles(next_obs)
        best = self.best(batch, next_obs, after.mean(-1))
        reward, terminated = self._reward(batch).unsqueeze(-1), self._tensor(batch.terminated).unsqueeze(-1)
        discount = self.algorithm.gamma if batch.discount is None else self._tensor(batch.discount).unsqueeze(-1)
        return losses.q_target(reward, terminated, quantiles_of(after, best), discount)

    @torch.no_grad()
    def targets(self, batch: Batch) -> Tensor:
        """r + gamma Q'(s', a*), where a* is the online net's choice (Double) or the target net's own, if legal.

        With `n_step` above 1, r is the discounted sum of that many rewards and gamma its power.
        """
        next_obs = self._tensor(self.actor.obs_normalizer(batch.next_obs))
        values = self.target(next_obs)
        next_q = values.gather(-1, self.best(batch, next_obs, values).unsqueeze(-1)).squeeze(-1)
        discount = self.algorithm.gamma if batch.discount is None else self._tensor(batch.discount)
        return losses.q_target(self._reward(batch), self._tensor(batch.terminated), next_q, discount)

    def _reward(self, batch: Batch) -> Tensor:
        """Rewards as they are learnt from now, or discounted sums of `n_step` of them."""
        return self._tensor(self.rewards.scaled(batch.reward, self.algorithm.n_step))

    def best(self, batch: Batch, next_obs: Tensor, values: Tensor) -> Tensor:
        """The action a* [B] to go on with: the online net's choice (Double) or that of `values`, if legal."""
        scores = self.net(next_obs) if self.algorithm.double else values
        if batch.next_mask is not None:
            scores = torch.where(self._tensor(batch.next_mask), scores, ILLEGAL)
        return scores.argmax(-1)

    @torch.no_grad()
    def _update_target(self, before: int, frame: int) -> None:
        every, polyak_update = self.algorithm.target_update, self.algorithm.polyak
        if polyak_update < 1 or frame // every > before // every:
            for old, new in zip(self.target.parameters(), self.net.parameters(), strict=True):
                old.lerp_(new, polyak_update)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def update_counts(self) -> UpdateCounts:
        """How frames become gradient steps, and how large the replay will be."""
        return replay_update_counts(self.spec, self.algorithm, self.replay)


def quantiles_of(quantiles: Tensor, action: Tensor) -> Tensor:
    """The quantiles [B, N] of one action [B] among those of all of them [B, A, N]."""
    return quantiles[torch.arange(len(action), device=action.device), action]
