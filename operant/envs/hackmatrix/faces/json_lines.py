"""The JSON-lines face: one JSON object a line in, exactly one reply line out, for any program that can use pipes."""

from __future__ import annotations

import json
import logging
from typing import Any, BinaryIO

from operant.envs.hackmatrix.constants import ACTION_COUNT, SIZE
from operant.envs.hackmatrix.faces import wire
from operant.envs.hackmatrix.faces.request_schema import REQUEST, demand
from operant.envs.hackmatrix.faces.set_state import Impossible, read_state
from operant.envs.hackmatrix.reference.game import Game

# Historic numbers that other programs may compare with; the observation has grown since.
OBSERVATION_SPACE = {"gridSize": SIZE, "playerFeatures": 9, "cellFeatures": 20}

log = logging.getLogger(__name__)


class Refusal(Exception):
    """A request that is answered by an error line and changes nothing."""


class Server:
    """Answers requests about one game, which begins with the first `reset` or `setState`."""

    def __init__(self) -> None:
        self._game: Game | None = None
        self._commands = {
            "reset": self._reset,
            "step": self._step,
            "setState": self._set_state,
            "getValidActions": self._valid_actions,
            "getInternalState": self._internal_state,
            "getActionSpace": lambda request: {"actionSpaceSize": ACTION_COUNT},
            "getObservationSpace": lambda request: OBSERVATION_SPACE,
        }

    def reply(self, line: bytes) -> str:
        """The one line that answers `line`."""
        try:
            answer = self._answer(line)
        except Refusal as refusal:
            log.info("refused: %s", refusal)
            answer = {"error": str(refusal)}
        try:
            return json.dumps(answer, allow_nan=False)
        except ValueError as problem:
            return json.dumps({"error": f"Failed to encode response: {problem}"})

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
            demand(request, REQUEST)
        except (ValueError, RecursionError) as problem:
            log.info("%s", problem)
            raise Refusal("Invalid command") from problem
        command = self._commands.get(request["action"])
        if command is None:
            raise Refusal(f"Unknown command: {request['action']}")
        return command(request)

    def _reset(self, request: dict[str, Any]) -> dict[str, Any]:
        seed = request.get("seed")
        if self._game is None:
            self._game = Game(seed)
        else:
            self._game.reset(seed)
        return {"observation": wire.observation(self._game.state)}

    def _step(self, request: dict[str, Any]) -> dict[str, Any]:
        action = request.get("actionIndex")
        if action is None:
            raise Refusal("Missing actionIndex")
        if not 0 <= action < ACTION_COUNT:
            raise Refusal(f"Invalid action index: {action}")
        if self._game is None:
            raise Refusal("Game not initialized")
        result = self._game.step(action)
        return wire.outcome(self._game.state, result)

    def _set_state(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("state") is None:
            raise Refusal("Missing state data for setState command")
        try:
            state = read_state(request["state"])
        except Impossible as problem:
            raise Refusal(f"Invalid state: {problem}") from problem
        if self._game is None:
            self._game = Game()
        self._game.put(state)
        return {"observation": wire.observation(state)}

    def _valid_actions(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"validActions": self._game.legal() if self._game else []}

    def _internal_state(self, request: dict[str, Any]) -> dict[str, Any]:
        return wire.internal(self._game.state) if self._game else wire.NO_GAME


def _refuse_constant(name: str) -> None:
    """NaN and Infinity, which Python would read, are no JSON."""
    raise ValueError(f"{name} is not JSON")


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer every line of `source` on `sink` until the input ends or the reader has closed it."""
    server = Server()
    for line in source:
        log.debug("request: %s", line)
        reply = server.reply(line)
        log.debug("reply: %s", reply)
        try:
            sink.write(reply.encode("utf-8") + b"\n")
            sink.flush()
        except BrokenPipeError:
            log.info("the reader of the replies is gone")
            return
