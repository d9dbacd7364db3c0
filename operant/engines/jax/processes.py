"""One program over several processes, on one machine or many: each holds its share of the devices.

All processes make the same calls of JAX in the same order, as its programs over several processes need. Process 0
trains as ever and tells the others each call before it makes it; what depends on the clock or on a person is decided
there alone. Only it writes; a checkpoint holds the whole state, gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from operant.engines.jax.platform import choose_platform, prepare_jax
from operant.engines.jax.program import Program, advance, stacked
from operant.engines.jax.programs import build_program
from operant.engines.jax.trainer import Lane, initial_states
from operant.run.processes.connection import Message
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.processes.leader import free_port
from operant.run.processes.leadership import Leadership, checkpoint_files
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.stored import stored

HEARTBEAT_SECONDS = 600  # JAX ends a process where another is silent for so long; ours notice sooner, and say who
SHUTDOWN_SECONDS = 10


def join(leadership: Leadership, spec: Spec) -> None:
    """Process 0 and the others become processes of one JAX, unless they are already."""
    if leadership.world is not None and not jax.distributed.is_initialized():
        port = free_port()
        leadership.tell("join", port=port, spec=spec.model_dump(mode="json"))
        _initialize(leadership.world, port, spec)


def begin(leadership: Leadership, spec: Spec, count: int, lanes: Sequence[Lane]) -> None:
    """The others build the program of `count` lanes and load the states that this process begins with."""
    if leadership.world is None:
        return
    by_index = {lane.index: lane for lane in lanes}
    of_lane = [by_index.get(index, lanes[0]) for index in range(count)]
    files: dict[str, Path] = {}
    for lane in lanes:
        files |= checkpoint_files(lane.session.latest and lane.session.latest.path, f"{lane.index}/")
    leadership.tell(
        "begin",
        files,
        spec=spec.model_dump(mode="json"),
        specs=[lane.spec.model_dump(mode="json") for lane in of_lane],
        seeds=[lane.session.seeds.seed for lane in of_lane],
    )


class FollowingProcess:
    """Another process: it makes the same calls, and drops what they return."""

    def __init__(self, world: DistributedConfig) -> None:
        self._config = world
        self._program: Program | None = None
        self._of: dict[str, Any] | None = None
        self._states: Any = None
        self._hyper: Any = None

    def obey(self, order: Message) -> None:
        """Carry out one order of process 0."""
        match order["order"]:
            case "join":
                _initialize(self._config, order["port"], stored(order["spec"]))
            case "begin":
                self._begin(order)
            case "advance":
                self._advance(order["updates"], order["moving"])
            case "gather":
                self.program.whole(self._states)
            case "end" if jax.distributed.is_initialized():
                jax.distributed.shutdown()

    @property
    def program(self) -> Program:
        """The program that has begun."""
        assert self._program is not None, "a program begins before it goes on"
        return self._program

    def _advance(self, updates: int, moving: Sequence[int]) -> None:
        self._states, _ = advance(self.program, self._states, self._hyper, updates, moving)

    def _begin(self, order: Message) -> None:
        spec, specs = stored(order["spec"]), [stored(each) for each in order["specs"]]
        prepare_jax(spec)
        if self._program is None or self._of != order["spec"] or self._program.lanes != len(specs):
            program = build_program(spec, len(specs))
            assert isinstance(program, Program), "environments on the host are of one process"
            self._program, self._of = program, order["spec"]
        self._hyper = stacked([self.program.learner.hyper(each) for each in specs])
        folder = Path(order.get("folder", ""))
        saved = {i: folder / str(i) for i in range(len(specs)) if "folder" in order and (folder / str(i)).is_dir()}
        self._states, _ = initial_states(self.program, [Seeds(seed) for seed in order["seeds"]], saved)


def _initialize(world: DistributedConfig, port: int, spec: Spec) -> None:
    """Join JAX's own processes, and let it find their devices, which all of them do together."""
    choose_platform(spec)
    with suppress(AttributeError):  # a version without it aborts where another process has died
        jax.config.update("jax_enable_recoverability", True)
    host = f"[{world.host}]" if ":" in world.host else world.host
    jax.distributed.initialize(
        f"{host}:{port}",
        world.num_processes,
        world.process_id,
        cluster_detection_method="deactivate",
        initialization_timeout=max(1, int(world.initialization_timeout)),
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
        shutdown_timeout_seconds=SHUTDOWN_SECONDS,
    )
    jax.devices()
