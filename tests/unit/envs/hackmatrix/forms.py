"""The forms of the game, each behind the checker's protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from operant.envs.hackmatrix.faces import wire
from operant.envs.hackmatrix.faces.set_state import read_state
from operant.envs.hackmatrix.reference import Game
from operant.envs.hackmatrix.reference.observation import observe

ROOT = Path(__file__).parents[4]
SERVE = [sys.executable, "-m", "operant", "hackmatrix", "serve"]


class Reference:
    """The plain Python game."""

    def __init__(self, seed: int = 0) -> None:
        self.game = Game(seed)

    def set_state(self, state: dict[str, Any]) -> dict[str, Any]:
        self.game.put(read_state(state))
        return wire.observation(self.game.state)

    def step(self, action: int) -> dict[str, Any]:
        result = self.game.step(action)
        return wire.outcome(self.game.state, result)

    def internal(self) -> dict[str, Any]:
        return wire.internal(self.game.state)

    def valid_actions(self) -> list[int]:
        return self.game.legal()

    def arrays(self) -> tuple[np.ndarray, np.ndarray] | None:
        seen = observe(self.game.state)
        return seen.player, seen.grid


class JsonLines:
    """The JSON-lines face in a process of its own."""

    def __init__(self, *options: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [*SERVE, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def ask(self, request: object) -> dict[str, Any]:
        return json.loads(self.say(json.dumps(request).encode()))

    def say(self, line: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def set_state(self, state: dict[str, Any]) -> dict[str, Any]:
        return self.ask({"action": "setState", "state": state})["observation"]

    def step(self, action: int) -> dict[str, Any]:
        return self.ask({"action": "step", "actionIndex": action})

    def internal(self) -> dict[str, Any]:
        return self.ask({"action": "getInternalState"})

    def valid_actions(self) -> list[int]:
        return self.ask({"action": "getValidActions"})["validActions"]

    def arrays(self) -> tuple[np.ndarray, np.ndarray] | None:
        return None

    def close(self) -> int:
        """End the input; the exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(10)
