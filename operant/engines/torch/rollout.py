"""Rollouts [T, N, ...]: what N environments played with one policy, by a number of steps or by whole episodes.

For whole episodes every environment plays its share from start to end and waits for the others: so no return is cut,
no action is of an older policy, and long episodes are as likely to count as short ones. They then lie one behind the
other in a single column, as if one environment had played them all. Each ends with its last step, so nothing passes
from one to the next, neither advantage nor hidden state.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from operant.engines.torch.actor import Actor
from operant.engines.torch.networks.acting import HiddenState
from operant.engines.torch.networks.heads import PolicyAndValue
from operant.engines.torch.normalize import RewardNormalizer
from operant.envs.vector.autoreset import AutoresetVectorEnv, Ended, Step

At = tuple[int, int]  # a step and an environment


@dataclass(frozen=True)
class HiddenStates:
    """What a recurrent network needs of a rollout beside its steps.

    `begun` [T, N] marks the first observations of episodes; `start` and `last` [N, H] are the hidden
    states before the first step and after the last one, and `final` those of ended episodes.
    """

    begun: np.ndarray
    start: np.ndarray
    last: np.ndarray
    final: dict[At, np.ndarray]


@dataclass(frozen=True)
class Rollout:
    """Steps as they were played; `final_obs` holds the last observations of ended episodes.

    Observations are normalized by the statistics of their moment, all but `final_obs`, which few
    algorithms need; rewards by those that include the whole rollout. `mask` is what was legal at
    each step and `final_mask` in final observations, where the environment says so and the algorithm
    asks. `outputs` are the policy outputs [T, N, A] and values [T, N] of the network as it acted,
    where acting computes both.
    """

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    last_obs: np.ndarray
    final_obs: dict[At, np.ndarray]
    ended: list[Ended]
    mask: np.ndarray | None = None
    final_mask: dict[At, np.ndarray] = field(default_factory=dict)
    hidden: HiddenStates | None = None
    outputs: tuple[np.ndarray, np.ndarray] | None = None


def collect(
    vector: AutoresetVectorEnv,
    actor: Actor,
    rewards: RewardNormalizer,
    rng: np.random.Generator,
    steps: int,
    forward: PolicyAndValue | None = None,
) -> Rollout:
    """Play `steps` steps in every environment, learning only the scales of observations and rewards.

    With `forward` the actions come of its policy outputs, which are kept in `outputs` beside its values.
    """
    recorder = Recorder(vector, actor, rewards, forward)
    for noise in actor.policy.noise(rng, (steps, vector.num)):
        recorder.step(noise)
    return recorder.close()


def collect_episodes(
    vector: AutoresetVectorEnv,
    actor: Actor,
    rewards: RewardNormalizer,
    rng: np.random.Generator,
    episodes: int,
    forward: PolicyAndValue | None = None,
) -> Rollout:
    """Play `episodes` whole episodes, as many in every environment; all environments stand at a start before and after.

    The rollout has one column, with the episodes of the first environment before those of the second.
    """
    recorder = Recorder(vector, actor, rewards, forward)
    owed = np.full(vector.num, episodes // vector.num)
    played: list[np.ndarray] = []
    while owed.any():
        played.append(owed > 0)
        step = recorder.step(actor.policy.noise(rng, (vector.num,)), played[-1])
        owed -= step.terminated | step.truncated
    return in_one_column(recorder.close(), np.stack(played))


class Recorder:
    """Plays step by step with one policy, and keeps what a rollout consists of."""

    def __init__(
        self, vector: AutoresetVectorEnv, actor: Actor, rewards: RewardNormalizer, forward: PolicyAndValue | None
    ) -> None:
        self._vector, self._actor, self._rewards, self._forward = vector, actor, rewards, forward
        self._obs: list[np.ndarray] = []
        self._action: list[np.ndarray] = []
        self._mask: list[np.ndarray] = []
        self._outputs: list[tuple[np.ndarray, np.ndarray]] = []
        self._reward: list[np.ndarray] = []
        self._terminated: list[np.ndarray] = []
        self._truncated: list[np.ndarray] = []
        self._ended: list[Ended] = []
        self._final_obs: dict[At, np.ndarray] = {}
        self._hidden = None if actor.hidden_state is None else HiddenStateRecorder(actor.hidden_state, vector.begun)

    def step(self, noise: np.ndarray, playing: np.ndarray | None = None) -> Step:
        """One step in every environment, or only where `playing`."""
        vector, t = self._vector, len(self._obs)
        self._actor.obs_normalizer.update(vector.obs if playing is None else vector.obs[playing])
        # Images stay bytes here: a quarter of the memory, and the network scales them itself.
        self._obs.append(self._actor.obs_normalizer(vector.obs))
        if vector.mask is not None:
            self._mask.append(vector.mask)
        self._action.append(self._act(noise))
        if self._hidden is not None:
            self._hidden.began.append(vector.begun)
        step = vector.step(self._action[-1], playing)
        self._rewards.update(step.reward, step.terminated | step.truncated, playing)
        for over in step.ended:
            self._final_obs[t, over.index] = step.next_obs[over.index]
            if self._hidden is not None:
                self._hidden.final[t, over.index] = self._hidden.hidden_state.states[over.index]
        self._reward.append(step.reward)
        self._terminated.append(step.terminated)
        self._truncated.append(step.truncated)
        self._ended += step.ended
        return step

    def _act(self, noise: np.ndarray) -> np.ndarray:
        vector, obs = self._vector, self._obs[-1]
        if self._forward is None:
            return self._actor.draw(obs, noise, vector.mask, vector.begun)
        self._outputs.append(self._forward(obs))
        return self._actor.pick(self._outputs[-1][0], noise, vector.mask)

    def close(self) -> Rollout:
        """All of it, once the last step is played; rewards are scaled by what is known of them then."""
        policy, value = zip(*self._outputs, strict=True) if self._outputs else ((), ())
        return Rollout(
            np.stack(self._obs),
            np.stack(self._action),
            self._rewards.scaled(np.stack(self._reward)),
            np.stack(self._terminated),
            np.stack(self._truncated),
            self._actor.obs_normalizer(self._vector.obs),
            self._final_obs,
            self._ended,
            np.stack(self._mask) if self._mask else None,
            hidden=None if self._hidden is None else self._hidden.close(),
            outputs=(np.stack(policy), np.stack(value)) if self._outputs else None,
        )


def in_one_column(rollout: Rollout, played: np.ndarray) -> Rollout:
    """The steps of whole episodes that were `played` [T, N], one episode behind the other, as a rollout [S, 1]."""
    env, t = np.nonzero(played.T)
    row = {at: s for s, at in enumerate(zip(t.tolist(), env.tolist(), strict=True))}

    def column(array: np.ndarray) -> np.ndarray:
        return array[t, env][:, None]

    def moved(finals: dict[At, np.ndarray]) -> dict[At, np.ndarray]:
        return {(row[at], 0): final for at, final in finals.items()}

    hidden = rollout.hidden
    if hidden is not None:
        hidden = HiddenStates(column(hidden.begun), hidden.start[:1], hidden.last[:1], moved(hidden.final))
    return Rollout(
        column(rollout.obs),
        column(rollout.action),
        column(rollout.reward),
        column(rollout.terminated),
        column(rollout.truncated),
        rollout.last_obs[:1],
        moved(rollout.final_obs),
        rollout.ended,
        None if rollout.mask is None else column(rollout.mask),
        moved(rollout.final_mask),
        hidden,
        None if rollout.outputs is None else (column(rollout.outputs[0]), column(rollout.outputs[1])),
    )


class HiddenStateRecorder:
    """Records hidden states while a rollout is played."""

    def __init__(self, hidden_state: HiddenState, begun: np.ndarray) -> None:
        hidden_state.reset(begun)
        self.hidden_state = hidden_state
        self.began: list[np.ndarray] = []
        self.final: dict[At, np.ndarray] = {}
        self._start = hidden_state.states

    def close(self) -> HiddenStates:
        """All of it, once the last step is played."""
        return HiddenStates(np.stack(self.began), self._start, self.hidden_state.states, self.final)
