"""Ray: generators and verifiers as actors, started here or on a cluster; the trainer is the process that asks them.

An actor that dies, or that gives no sign of life for longer than the patience, is replaced; the new one gets the
newest weights and what the old one had in hand is done once more, so that nothing is lost. A cluster that was
started here ends with the session.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from operant.engines.language.build import text_of
from operant.engines.language.distributed.ray_actors import Judge, Writer
from operant.engines.language.distributed.replicas import ActorGenerator, ActorJudges, Courier
from operant.engines.language.telemetry.prompt_accounting import Witness
from operant.envs.text.verify_worker import Recipe
from operant.errors import OperantError, RunError
from operant.install import missing_package
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

START_SECONDS = 600.0
POLL_SECONDS = 2.0
TRIES = 3


class Lost(Exception):
    """An actor is gone, or as good as gone."""


class Post:
    """One actor, or its successor (final). One thread at a time calls it.

    `prepare` is called with each new actor before anything else; `beat` whenever the actor shows that it lives, and
    what it raises ends the call.
    """

    def __init__(self, name: str, make: Callable[[], Any], witness: Witness, asked: str) -> None:
        self.name = name
        self.asked = asked
        self.witness = witness
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
                self.witness.tell(
                    "replaced", f"{self.name} (process {self._pid}) {loss}; a new one does its work again"
                )
                self.witness.trace.mark("replaced", self.name, pid=self._pid, why=str(loss))
        raise RunError(f"{self.name} was lost {TRIES} times in a row: it {reason}")

    def wait(self, actor: Any, reference: Any) -> Any:
        """An answer, as soon as it is there."""
        ray, last, heard = ray_package(), None, time.monotonic()
        while True:
            done, _ = ray.wait([reference], timeout=POLL_SECONDS)
            if done:
                return _answer(reference)
            self.witness.watch.check()
            sign = self._sign(actor)
            if sign is not None and sign != last:
                last, heard = sign, time.monotonic()
                self.beat()
            elif time.monotonic() - heard > self.witness.patience:
                raise Lost(f"gave no sign of life for {self.witness.patience:g} s")

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
            return _answer(actor.pulse.remote(), POLL_SECONDS)
        except ray_package().exceptions.GetTimeoutError:
            return None

    def _ready(self) -> Any:
        if self._actor is None:
            self._actor = self._make()
            self._pid = self._begin(self._actor)
            self.witness.trace.mark("placed", self.name, pid=self._pid)
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


class Cluster:
    """Where actors are placed (final)."""

    def __init__(self, spec: Spec, witness: Witness) -> None:
        self.settings = spec.meta.ray
        self.text = text_of(spec)
        self.threads = spec.meta.threads or 1
        self.witness = witness
        self.posts: list[Post] = []

    def writers(self, spec: Spec, seeds: Seeds) -> list[ActorGenerator]:
        """Generators, each on a copy of the model."""
        settings, plain = self.settings, spec.model_dump(mode="json")
        cpus, gpus = settings.generator_cpus, settings.generator_gpus
        device = "cuda" if gpus else "cpu"
        posts = [
            self._post(f"generator {number}", Writer, cpus, gpus, plain, seeds.seed, self.threads, device)
            for number in range(settings.generators)
        ]
        courier = Courier(ray_package().put)
        return [ActorGenerator(post, courier) for post in posts]

    def judges(self, recipes: Sequence[Recipe]) -> ActorJudges:
        """Verifiers, each of which judges in a process of its own beside it."""
        posts = [
            self._post(f"verifier {number}", Judge, self.settings.verifier_cpus, 0.0, list(recipes), self.text.seconds)
            for number in range(self.text.workers)
        ]
        return ActorJudges(posts, self.witness)

    def close(self) -> None:
        """End every actor."""
        for post in self.posts:
            post.close()

    def _post(self, name: str, kind: type, cpus: float, gpus: float, *arguments: Any) -> Post:
        # One thread works and another answers how far it is. Restarts are ours, for a new actor needs the weights.
        actor = ray_package().remote(kind).options(num_cpus=cpus, num_gpus=gpus, max_concurrency=2, max_restarts=0)
        post = Post(name, lambda: actor.remote(*arguments), self.witness, f"{cpus:g} CPUs and {gpus:g} GPUs")
        self.posts.append(post)
        return post


@contextmanager
def open_cluster(spec: Spec, witness: Witness) -> Iterator[Cluster]:
    """Join the cluster of the spec or start one here; what was started, and every actor, ends with the block."""
    ray = ray_package()
    _connect(ray, spec)
    cluster = Cluster(spec, witness)
    try:
        yield cluster
    finally:
        cluster.close()
        ray.shutdown()


def ray_package() -> Any:
    """The package ray, which nothing else here imports."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "ray", "meta.cluster ray") from missing
    return ray


def _connect(ray: Any, spec: Spec) -> None:
    settings = spec.meta.ray
    options: dict[str, Any] = {"log_to_driver": False, "include_dashboard": False, "configure_logging": False}
    if settings.address is not None:
        options = {"address": settings.address, "log_to_driver": False, "configure_logging": False}
    else:
        asked = settings.generators * settings.generator_cpus + text_of(spec).workers * settings.verifier_cpus
        # Requests are shares and no limits; where one machine has fewer cores than were asked for, it is shared.
        options["num_cpus"] = max(os.cpu_count() or 1, int(asked) + 1)
        if settings.store_mb is not None:
            options["object_store_memory"] = settings.store_mb * 2**20
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray takes SIGTERM for itself, which is the session's request to stop.
    ours = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as fault:
        place = settings.address or "here"
        raise RunError(f"Ray could not be reached or started: {fault}", place=place, remedy="ray status") from fault
    finally:
        if ours is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)


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
