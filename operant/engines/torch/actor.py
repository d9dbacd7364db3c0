"""The acting half of a policy: what training, evaluation and `watch` all ask for actions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from operant.engines.torch.networks.acting import HiddenState
from operant.engines.torch.normalize import ObservationNormalizer
from operant.engines.torch.policies import Policy
from operant.envs.vector.evaluation import Act
from operant.run.seeding import Seeds


class Actor:
    """Observations in, actions out; the observation statistics are applied but not changed.

    `mask` says what is legal, None for everything; `begun` which observations are the first of an
    episode, for a recurrent network. Its hidden states in training (`draw`) and in other play
    (`greedy`, `sample`) are kept apart, so that an evaluation does not disturb a rollout.
    """

    def __init__(
        self,
        forward: Callable[..., np.ndarray],
        obs_normalizer: ObservationNormalizer,
        policy: Policy,
        log_std: Tensor | None = None,
    ) -> None:
        self.forward = forward
        self.obs_normalizer = obs_normalizer
        self.policy = policy
        self._log_std = log_std
        self._evaluating = forward.separate() if isinstance(forward, HiddenState) else forward

    @property
    def hidden_state(self) -> HiddenState | None:
        """That of training; None where the network is not recurrent."""
        return self.forward if isinstance(self.forward, HiddenState) else None

    def draw(
        self, obs: np.ndarray, noise: np.ndarray, mask: np.ndarray | None = None, begun: np.ndarray | None = None
    ) -> np.ndarray:
        """An action of each normalized observation, by noise drawn before."""
        return self.pick(_output(self.forward, obs, begun), noise, mask)

    def pick(self, output: np.ndarray, noise: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        """An action of each policy output."""
        log_std = None if self._log_std is None else self._log_std.detach().cpu().numpy()
        return self.policy.sample(output, noise, log_std, mask)

    def greedy(self, obs: np.ndarray, mask: np.ndarray | None = None, begun: np.ndarray | None = None) -> np.ndarray:
        """The most probable action of each observation."""
        return self.policy.greedy(self.outputs(obs, begun), mask)

    def sample(
        self,
        obs: np.ndarray,
        rng: np.random.Generator,
        mask: np.ndarray | None = None,
        begun: np.ndarray | None = None,
    ) -> np.ndarray:
        """An action of each observation, drawn as in training."""
        return self.pick(self.outputs(obs, begun), self.policy.noise(rng, (len(obs),)), mask)

    def outputs(self, obs: np.ndarray, begun: np.ndarray | None = None) -> np.ndarray:
        """What the network gives for observations in play that is not training."""
        return _output(self._evaluating, self.obs_normalizer(obs), begun)

    def player(self, seed: int, greedy: bool = True) -> Act:
        """How to play: greedily, or by draws of a stream of `seed`."""
        if greedy:
            return self.greedy
        rng = Seeds(seed).rng("sampled-play")
        return lambda obs, mask, begun: self.sample(obs, rng, mask, begun)


def _output(forward: Callable[..., np.ndarray], obs: np.ndarray, begun: np.ndarray | None) -> np.ndarray:
    if not isinstance(forward, HiddenState):
        return forward(obs)
    assert begun is not None, "a recurrent network is told where episodes begin"
    return forward(obs, begun)
