"""One Ray actor as its caller sees it: it is replaced when it dies, or when it gives no sign of life for too long."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from operant.engines.language.telemetry.telemetry import Telemetry
from operant.errors import OperantError, RunError
from operant.install import missing_package

START_SECONDS = 600.0


POLL_SECONDS = 2.0


TRIES = 3


class Lost(Exception):
    """An actor is gone, or as good as gone."""


class ActorHandle:
    """One actor, or its successor (final). One thread at a time calls it.

    `prepare` is called with each new actor before anything else; `beat` whenever the actor shows that it lives, and
    what it raises ends the call.
    """

    def __init__(self, name: str, make: Callable[[], Any], telemetry: Telemetry, asked: str) -> None:
        self.name = name
        self.asked = asked
        self.telemetry = telemetry
        self.prepare: Callable[[Any], object] = lambda actor: None
        self.beat: Callable[[], object] = lambda: None
        self._make = make
        self._actor: Any = None
        self._pid = 0
        self._closed = False

    def call(self, method: str, *arguments: Any, lost: Callable[[], object] = lambda: None) -> Any:
        """What the actor answers; after a death its successor is asked, and `lost` told."""
        reason = ""
        for _ in range(TRIES):
            try:
                actor = self._ready()
                return self.wait(actor, getattr(actor, method).remote(*arguments))
            except Lost as loss:
                self._end()
                if self._closed:
                    raise RunError(f"{self.name} was closed") from None
                lost()
                reason = str(loss)
                self.telemetry.tell(
                    "replaced", f"{self.name} (process {self._pid}) {loss}; a new one does its work again"
                )
                self.telemetry.trace.mark("replaced", self.name, pid=self._pid, why=str(loss))
        raise RunError(f"{self.name} was lost {TRIES} times in a row: it {reason}")

    def wait(self, actor: Any, reference: Any) -> Any:
        """An answer, as soon as it is there."""
        ray, last, heard = ray_package(), None, time.monotonic()
        while True:
            done, _ = ray.wait([reference], timeout=POLL_SECONDS)
            if done:
                return _answer(reference)
            self.telemetry.watchdog.check()
            sign = self._sign(actor)
            if sign is not None and sign != last:
                last, heard = sign, time.monotonic()
                self.beat()
            elif time.monotonic() - heard > self.telemetry.patience:
                raise Lost(f"gave no sign of life for {self.telemetry.patience:g} s")

    def close(self) -> None:
        """End the actor for good. Any thread may call this; a call under way ends with an error."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        actor, self._actor = self._actor, None
        if actor is not None:
            with suppress(Exception):
                ray_package().kill(actor)

    def _sign(self, actor: Any) -> Any:
        """How much the actor has done; None if it does not say in time."""
        try:
            return _answer(actor.heartbeat.remote(), POLL_SECONDS)
        except ray_package().exceptions.GetTimeoutError:
            return None

    def _ready(self) -> Any:
        if self._actor is None:
            self._actor = self._make()
            self._pid = self._begin(self._actor)
            self.telemetry.trace.mark("placed", self.name, pid=self._pid)
            self.prepare(self._actor)
        return self._actor

    def _begin(self, actor: Any) -> int:
        """The process of a new actor, once it runs."""
        ray = ray_package()
        reference, end = actor.about.remote(), time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            done, _ = ray.wait([reference], timeout=POLL_SECONDS)
            if done:
                return _answer(reference)
            self.beat()
        have = {key: value for key, value in ray.cluster_resources().items() if key in ("CPU", "GPU")}
        raise RunError(
            f"{self.name} found no place within {START_SECONDS:g} s: it asks for {self.asked}, Ray has {have}"
        )


def ray_package() -> Any:
    """The package ray, which nothing else here imports."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "ray", "meta.cluster ray") from missing
    return ray


def _answer(reference: Any, timeout: float | None = None) -> Any:
    """What a reference stands for; a death is `Lost`, and what an actor raised is raised as it was."""
    ray = ray_package()
    exceptions = ray.exceptions
    gone = (exceptions.RayActorError, exceptions.ObjectLostError, exceptions.WorkerCrashedError)
    try:
        return ray.get(reference, timeout=timeout)
    except gone as death:
        # An actor that could not be made says why in its last line.
        reason = str(death).strip().splitlines()[-1] if "creation task" in str(death) else ""
        raise Lost(f"died: {reason}" if reason else "died") from death
    except exceptions.RayTaskError as fault:
        if isinstance(fault.cause, OperantError):
            raise fault.cause from None
        raise
