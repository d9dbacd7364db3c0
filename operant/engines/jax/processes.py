"""One program over several processes, on one machine or many: each holds its share of the devices.

All processes make the same calls of JAX in the same order, as its programs over several processes need. Process 0 trains as
ever and tells the others each call before it makes it; what depends on the clock or on a person is decided there alone.
Only it writes; a checkpoint holds the whole state, gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import jax

from operant.engines.jax.learner import TrainState
from operant.engines.jax.program import Program, advance, choose_platform, prepare_jax, stacked
from operant.engines.jax.programs import build_program
from operant.engines.jax.trainer import Lane, in_phase, initial_states
from operant.errors import EXIT_FAILED, OperantError
from operant.run.processes.connection import Message
from operant.run.processes.leader import Leader, cause_of, free_port
from operant.run.processes.world import World
from operant.run.seeding import Seeds
from operant.run.session import Session
from operant.spec.schema import Spec
from operant.spec.stored import stored

HEARTBEAT_SECONDS = 600  # JAX ends a process where another is silent for so long; ours notice sooner, and say who
SHUTDOWN_SECONDS = 10


class Processes:
    """The other processes of this one's sessions, which process 0 leads; none, and nothing to tell, where it is alone.

    While open. They come in when the first sessions are open, so that a run records why one did not, and are dismissed
    with the exit code `code`.
    """

    def __init__(self, world: World | None) -> None:
        self.shared = world is not None
        self.code = EXIT_FAILED
        self._world = world
        self._leader: Leader | None = None
        self._sessions: Sequence[Session] = ()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if self._leader is None:
            return
        if error is None:
            self.tell("shutdown")
            self._leader.dismiss(self.code)
        else:
            self._leader.fail(f"process 0 failed: {cause_of(error)}")

    @contextmanager
    def of(self, sessions: Sequence[Session]) -> Iterator[None]:
        """All processes train these sessions; one that dies fails them with an error that names it."""
        if self._world is None:
            yield
            return
        self._sessions = sessions
        if self._leader is None:
            with in_phase(sessions, "waiting for the other processes"):
                self._leader = Leader(self._world, sessions[0].run, "jax", self._record_failure)
                port = free_port()
                self.tell("initialize", port=port, spec=sessions[0].run.spec)
                _initialize(self._world, port, stored(sessions[0].run.spec))
        try:
            yield
        except OperantError:
            raise
        except Exception as broken:
            death = self._leader.failure()
            if death is None:
                raise
            raise death from broken

    def begin(self, spec: Spec, count: int, lanes: Sequence[Lane]) -> None:
        """The others build the program of `count` lanes and load the states that this process begins with."""
        by_index = {lane.index: lane for lane in lanes}
        of_lane = [by_index.get(index, lanes[0]) for index in range(count)]
        self.tell(
            "begin",
            _checkpoint_files(lanes) if self.shared else None,
            spec=spec.model_dump(mode="json"),
            specs=[lane.spec.model_dump(mode="json") for lane in of_lane],
            seeds=[lane.session.seeds.seed for lane in of_lane],
        )

    def tell(self, order: str, files: Mapping[str, Path] | None = None, **arguments: Any) -> None:
        """Tell the others what this process does next."""
        if self._leader is not None:
            self._leader.tell(order, files, **arguments)

    def _record_failure(self, cause: str) -> None:
        for session in self._sessions:
            session.run.record(state="failed", error=cause)


def _checkpoint_files(lanes: Sequence[Lane]) -> dict[str, Path]:
    saved = [(lane.index, lane.session.latest.path) for lane in lanes if lane.session.latest is not None]
    return {f"{index}/{path.name}": path for index, folder in saved for path in folder.iterdir() if path.is_file()}


class FollowingProcess:
    """Another process: it makes the same calls, and drops what they return."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._program: Program | None = None
        self._of: dict[str, Any] | None = None
        self._states: TrainState | None = None
        self._hyper: Any = None

    def obey(self, order: Message) -> None:
        """Carry out one order."""
        if order["order"] == "initialize":
            _initialize(self._world, order["port"], stored(order["spec"]))
        elif order["order"] == "begin":
            self._begin(order)
        elif order["order"] == "shutdown":
            jax.distributed.shutdown()
        else:
            assert self._program is not None and self._states is not None, "a program begins before it goes on"
            if order["order"] == "advance":
                self._states, _ = advance(self._program, self._states, self._hyper, order["updates"], order["moving"])
            else:
                self._program.whole(self._states)

    def _begin(self, order: Message) -> None:
        spec, specs = stored(order["spec"]), [stored(each) for each in order["specs"]]
        prepare_jax(spec)
        if self._program is None or self._of != order["spec"] or self._program.lanes != len(specs):
            program = build_program(spec, len(specs))
            assert isinstance(program, Program), "environments on the host are of one process"
            self._program, self._of = program, order["spec"]
        self._hyper = stacked([self._program.learner.hyper(each) for each in specs])
        folder = Path(order.get("folder", ""))
        saved = {i: folder / str(i) for i in range(len(specs)) if "folder" in order and (folder / str(i)).is_dir()}
        self._states, _ = initial_states(self._program, [Seeds(seed) for seed in order["seeds"]], saved)


def _initialize(world: World, port: int, spec: Spec) -> None:
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
