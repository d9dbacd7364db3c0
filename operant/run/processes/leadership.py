"""The sessions of process 0 and the processes that share them, from the moment that those come to their dismissal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from operant.errors import EXIT_DONE, EXIT_FAILED, EXIT_STOPPED, OperantError
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.processes.leader import Leader, cause_of
from operant.run.session import Session


class Leadership:
    """The other processes of this one's sessions; none, and nothing to tell, where it is alone.

    They come in when the first sessions are open, so that a run records why one did not, and are dismissed at the end
    of the context, when the sessions have written their last.
    """

    def __init__(self, world: DistributedConfig | None, engine: str) -> None:
        self.world = world
        self._engine = engine
        self._leader: Leader | None = None
        self._sessions: Sequence[Session] = ()
        self._code = EXIT_FAILED
        self._failure: BaseException | None = None

    def __enter__(self) -> Leadership:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if self._leader is None:
            return
        if error is None:
            self._leader.dismiss(self._code)
        else:
            self._leader.fail(f"process 0 failed: {cause_of(error)}")

    @contextmanager
    def of(self, sessions: Sequence[Session]) -> Iterator[None]:
        """All processes train these sessions; one that dies fails them and later ones, with an error that names it."""
        if self.world is None:
            yield
            return
        if self._failure is not None:
            raise self._failure
        self._sessions = sessions
        try:
            self._leader = self._leader or self._admit(self.world)
            yield
        except BaseException as broken:
            self._failure = self._cause(broken)
            if self._failure is broken:
                raise
            raise self._failure from broken
        stopped = any(session.stop_requested for session in sessions)
        self._code = EXIT_STOPPED if stopped else EXIT_DONE

    def _cause(self, broken: BaseException) -> BaseException:
        """The death of another process, where that is why a computation broke; else the error itself."""
        if self._leader is None or isinstance(broken, OperantError) or not isinstance(broken, Exception):
            return broken
        return self._leader.failure() or broken

    def tell(self, order: str, files: Mapping[str, Path] | None = None, **arguments: Any) -> None:
        """Tell the others what this process does next."""
        if self._leader is not None:
            self._leader.tell(order, files, **arguments)

    def _admit(self, world: DistributedConfig) -> Leader:
        with ExitStack() as phases:
            for session in self._sessions:
                phases.enter_context(session.phase("waiting for the other processes"))
            return Leader(world, self._sessions[0].run, self._engine, self._record_failure)

    def _record_failure(self, cause: str) -> None:
        for session in self._sessions:
            session.run.record(state="failed", error=cause)


def checkpoint_files(folder: Path | None, under: str = "") -> dict[str, Path]:
    """The files of a checkpoint by the names under which they are sent."""
    return {} if folder is None else {f"{under}{path.name}": path for path in folder.iterdir() if path.is_file()}
