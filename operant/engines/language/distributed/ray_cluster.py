"""Ray: generators and verifiers as actors, started here or on a cluster; the trainer is the process that asks them.

An actor that dies, or that gives no sign of life for longer than the patience, is replaced; the new one gets the
newest weights and what the old one had in hand is done once more, so that nothing is lost. A cluster that was
started here ends with the session.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from operant.engines.language.config import reward_data, text_of
from operant.engines.language.distributed.actor_handle import ActorHandle, ray_package
from operant.engines.language.distributed.ray_actors import GeneratorWorker, VerifierWorker
from operant.engines.language.distributed.replicas import ActorGenerator, ActorVerifiers, WeightStore
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.envs.text.verify_worker import Recipe
from operant.errors import RunError
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


class Cluster:
    """Where actors are placed (final)."""

    def __init__(self, spec: Spec, telemetry: Telemetry) -> None:
        self.settings = spec.meta.ray
        self.text = text_of(spec)
        self.threads = spec.meta.threads or 1
        self.telemetry = telemetry
        self.handles: list[ActorHandle] = []

    def generators(self, spec: Spec, seeds: Seeds) -> list[ActorGenerator]:
        """Generators, each on a copy of the model."""
        settings, plain = self.settings, spec.model_dump(mode="json")
        cpus, gpus = settings.generator_cpus, settings.generator_gpus
        device = "cuda" if gpus else "cpu"
        handles = [
            self._handle(f"generator {number}", GeneratorWorker, cpus, gpus, plain, seeds.seed, self.threads, device)
            for number in range(settings.generators)
        ]
        weight_store = WeightStore(ray_package().put)
        return [ActorGenerator(handle, weight_store) for handle in handles]

    def verifiers(self, recipes: Sequence[Recipe]) -> ActorVerifiers:
        """Verifiers, each of which scores in a process of its own beside it."""
        arguments = list(recipes), self.text.seconds, reward_data(self.text)
        handles = [
            self._handle(f"verifier {number}", VerifierWorker, self.settings.verifier_cpus, 0.0, *arguments)
            for number in range(self.text.workers)
        ]
        return ActorVerifiers(handles, self.telemetry)

    def close(self) -> None:
        """End every actor."""
        for handle in self.handles:
            handle.close()

    def _handle(self, name: str, kind: type, cpus: float, gpus: float, *arguments: Any) -> ActorHandle:
        # One thread works and another answers how far it is. Restarts are ours, for a new actor needs the weights.
        actor = ray_package().remote(kind).options(num_cpus=cpus, num_gpus=gpus, max_concurrency=2, max_restarts=0)
        handle = ActorHandle(name, lambda: actor.remote(*arguments), self.telemetry, f"{cpus:g} CPUs and {gpus:g} GPUs")
        self.handles.append(handle)
        return handle


@contextmanager
def open_cluster(spec: Spec, telemetry: Telemetry) -> Iterator[Cluster]:
    """Join the cluster of the spec or start one here; what was started, and every actor, ends with the block."""
    ray = ray_package()
    _connect(ray, spec)
    cluster = Cluster(spec, telemetry)
    try:
        yield cluster
    finally:
        cluster.close()
        ray.shutdown()


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
    except Exception as fault:  # Ray raises it as it is where a node is too slow to start
        place = settings.address or "here"
        raise RunError(f"Ray could not be reached or started: {fault}", place=place, remedy="ray status") from fault
    finally:
        if ours is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)
