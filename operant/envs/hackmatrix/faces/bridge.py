"""A Gymnasium environment over any program that speaks the JSON-lines protocol, such as a build of the original.

    HACKMATRIX_BINARY=PATH operant train maskable_ppo_hackmatrix -s env.name=operant/HackMatrixBridge-v0

A program that ignores the seed of a reset plays unpredictable games, and a run on it could not be repeated.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from operant.envs.hackmatrix.constants import ACTION_COUNT, REWARD_KEYS, STEP_LIMIT
from operant.envs.hackmatrix.faces.decode import NONSENSE, decode, marked
from operant.envs.hackmatrix.faces.gym import Form, in_form, observation_space
from operant.envs.hackmatrix.faces.json_process import Child, command_of
from operant.errors import RunError

ANSWER_SECONDS = 30.0


class HackMatrixBridge(gym.Env[Any, Any]):
    """The game that a child process plays, with the spaces, masks and time limit of `HackMatrix-v0`.

    `binary` is a path or a command line; by default what `HACKMATRIX_BINARY` says.
    """

    def __init__(self, binary: str | None = None, observation: Form = "flat", timeout: float = ANSWER_SECONDS) -> None:
        self.action_space = Discrete(ACTION_COUNT)
        self.observation_space = observation_space(observation)
        self._form: Form = observation
        self._steps = 0
        self._mask = np.zeros(ACTION_COUNT, bool)
        self._child = Child(command_of(binary), timeout)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        request = {} if seed is None else {"seed": seed}
        answer = self._child.ask(action="reset", **request)
        self._steps = 0
        return self._observation(answer), self._info(answer)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        answer = self._child.ask(action="step", actionIndex=int(action))
        obs, info = self._observation(answer), self._info(answer)
        try:
            reward, done = float(answer["reward"]), bool(answer["done"])
            info |= {"reward_parts": _parts(reward, answer["info"]["reward_breakdown"])}
        except NONSENSE as problem:
            raise _nonsense("step", problem, self._child) from problem
        self._steps += 1
        return obs, reward, done, self._steps >= STEP_LIMIT and not done, info

    def action_masks(self) -> np.ndarray:
        """Which of the 28 actions are legal now."""
        return self._mask.copy()

    def close(self) -> None:
        """End the child process; harmless when repeated."""
        self._child.close()

    def _observation(self, answer: dict[str, Any]) -> Any:
        try:
            return in_form(decode(answer["observation"]), self._form)
        except NONSENSE as problem:
            raise _nonsense("observation", problem, self._child) from problem

    def _info(self, answer: dict[str, Any]) -> dict[str, Any]:
        valid = self._child.ask(action="getValidActions")
        try:
            self._mask = marked(valid["validActions"], ACTION_COUNT)
        except NONSENSE as problem:
            raise _nonsense("getValidActions", problem, self._child) from problem
        obs = answer["observation"]
        return {"action_mask": self.action_masks(), "stage": obs["stage"], "score": obs["score"]}


def _parts(reward: float, breakdown: dict[str, float]) -> dict[str, float]:
    """The reward by part; what the breakdown leaves out is the step penalty."""
    parts = {part: float(breakdown[key]) for part, key in REWARD_KEYS.items()}
    return {"step_penalty": reward - sum(parts.values())} | parts


def _nonsense(what: str, problem: Exception, child: Child) -> RunError:
    return RunError(
        f"the game's answer makes no sense as {what}: {type(problem).__name__}: {problem}",
        place=child.command[0],
        remedy="hold it against `operant hackmatrix serve`, whose answers are right",
    )
