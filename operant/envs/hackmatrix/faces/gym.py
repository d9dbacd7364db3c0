"""The game as a Gymnasium environment, `HackMatrix-v0`, played by the plain Python reference.

    import gymnasium, operant.envs.gym
    env = gymnasium.make("HackMatrix-v0")

`info["action_mask"]` and `action_masks()` say which actions are legal, as Operant's engines and
sb3-contrib's `MaskablePPO` ask. An episode ends by death, victory or an action that cannot be carried
out, and is cut after 1000 steps, by the game itself: Gymnasium's limit would cut one in the very step that ends it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from operant.envs.hackmatrix.constants import (
    ACTION_COUNT,
    CHANNELS,
    OBSERVATION_SIZE,
    PLAYER_FEATURES,
    PROGRAM_COUNT,
    SIZE,
)
from operant.envs.hackmatrix.reference.game import Game, Outcome
from operant.envs.hackmatrix.reference.observation import Arrays, observe

Form = Literal["flat", "dict"]


def observation_space(form: Form) -> gym.Space:
    """One vector of 1545 numbers, or its three parts by name. Few of the numbers have an upper limit."""
    if form == "flat":
        return Box(0, np.inf, (OBSERVATION_SIZE,), np.float32)
    return Dict(
        player=Box(0, np.inf, (PLAYER_FEATURES,), np.float32),
        programs=Box(0, 1, (PROGRAM_COUNT,), np.int32),
        grid=Box(0, np.inf, (SIZE, SIZE, CHANNELS), np.float32),
    )


def in_form(arrays: Arrays, form: Form) -> Any:
    """An observation as the space of that form has it."""
    return arrays.flat() if form == "flat" else arrays._asdict()


class HackMatrix(gym.Env[Any, Any]):
    """One game, with observations in the `flat` or the `dict` form.

    A reset with a seed starts that seed's first game; one without goes on to the next.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}

    def __init__(self, observation: Form = "flat", render_mode: str | None = None) -> None:
        if observation not in ("flat", "dict"):
            raise ValueError(f"observation {observation!r} is neither 'flat' nor 'dict'")
        self.action_space = Discrete(ACTION_COUNT)
        self.observation_space = observation_space(observation)
        self.render_mode = render_mode
        self._form: Form = observation
        self.game: Game | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        if self.game is None:
            self.game = Game(seed)
        else:
            self.game.reset(seed)
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        outcome = self._begun().step(int(action))
        return self._observation(), outcome.reward, outcome.done, outcome.truncated, self._info(outcome)

    def action_masks(self) -> np.ndarray:
        """Which of the 28 actions are legal now."""
        return np.array(self._begun().mask(), bool)

    def render(self) -> Any:
        """The board: text with colours, or a picture."""
        from operant.envs.hackmatrix.faces.render import ansi
        from operant.envs.hackmatrix.faces.wire import observation
        from operant.envs.hackmatrix.viewer.picture import picture
        from operant.envs.hackmatrix.viewer.replay import Frame

        game = self._begun()
        if self.render_mode == "ansi":
            return ansi(game.state)
        return np.asarray(picture(Frame(observation(game.state), tuple(game.legal()))))

    def _begun(self) -> Game:
        if self.game is None:
            raise gym.error.ResetNeeded("call reset before anything else")
        return self.game

    def _observation(self) -> Any:
        return in_form(observe(self._begun().state), self._form)

    def _info(self, outcome: Outcome | None = None) -> dict[str, Any]:
        state = self._begun().state
        info = {"action_mask": self.action_masks(), "stage": state.stage, "score": state.player.score}
        if outcome is not None:
            flags = {"invalid_action": outcome.refused, "death": outcome.died, "victory": outcome.won}
            info |= flags | {"reward_parts": outcome.parts}
        return info
