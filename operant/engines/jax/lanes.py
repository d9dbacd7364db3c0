"""Which sessions share a program: those whose specs differ in nothing but traced numbers.

How many lanes a program has, and which lane a session is, decide the last bits of its results. Both are kept in
run.json, so a session that is resumed alone still computes in its old lane. The sessions of a trial are lanes side by
side. Trials that have the same lanes train one after another, by the very same compiled program, so each has the bytes
that it would have alone, whichever the others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from operant.engines.jax.evaluation import Evaluator
from operant.engines.jax.host.evaluation import HostEvaluator
from operant.engines.jax.host.program import HostProgram
from operant.engines.jax.learners import learner_class
from operant.engines.jax.platform import gpus_of, limit_threads, prepare_jax
from operant.engines.jax.processes import begin, join
from operant.engines.jax.program import Program
from operant.engines.jax.programs import build_evaluator, build_program
from operant.engines.jax.trainer import Lane, Trainer, in_phase
from operant.envs.functional.find import steps_on_host
from operant.run.processes.distributed_config import distributed_config
from operant.run.processes.leadership import Leadership
from operant.run.run import Run
from operant.run.session import Session
from operant.run.stop import StopRequest
from operant.spec.errors import dotted
from operant.spec.reading.document import leaves
from operant.spec.stored import stored

IGNORED = ("name", "search", "meta.seed", "meta.max_session", "meta.max_trial")
OF_SEARCH = "meta.search_"


@dataclass(frozen=True)
class Assignment:
    """A session and its lane among the `lanes` of its program."""

    run: Run
    lane: int
    lanes: int


Row = list[Assignment]  # sessions of different lanes, which train side by side


def train_groups(runs: Sequence[Run], until: int | None) -> None:
    """Train the sessions, row after row, those that agree by one program; together with the other processes, if any.

    An error in one row is recorded in its sessions, and raised when the others are trained.
    """
    errors: list[Exception] = []
    with StopRequest() as stop, Leadership(distributed_config(), "jax") as leadership:
        for rows in groups(runs):
            program = SharedProgram(rows[0][0], leadership)
            for row in rows:
                try:
                    program.train(row, until, stop)
                except Exception as error:
                    errors.append(error)
                if stop.requested:
                    return
        if errors:
            raise errors[0]


class SharedProgram:
    """The program of sessions like `first`, compiled by the first row that trains and used by all."""

    def __init__(self, first: Assignment, leadership: Leadership) -> None:
        self._spec, self._lanes = stored(first.run.spec), first.lanes
        self._leadership = leadership
        if steps_on_host(self._spec.env):
            limit_threads(first.run.threads)

    @cached_property
    def _compiled(self) -> tuple[Program | HostProgram, Evaluator | HostEvaluator]:
        program, meta = build_program(self._spec, self._lanes), self._spec.meta
        return program, build_evaluator(program.learner, max(meta.eval_episodes, meta.final_episodes))

    def train(self, row: Row, until: int | None, stop: StopRequest) -> None:
        """Train the sessions of one row."""
        with ExitStack() as stack:
            sessions = [stack.enter_context(assignment.run.session(until, stop)) for assignment in row]
            with self._leadership.of(sessions):
                join(self._leadership, self._spec)
                device = prepare_jax(self._spec)
                for assignment, session in zip(row, sessions, strict=True):
                    session.use_gpus(gpus_of(self._spec))
                    _record_lane(session, assignment, device)
                with in_phase(sessions, "building"):
                    program, evaluator = self._compiled
                actions = program.learner.env.actions
                members = zip(sessions, row, strict=True)
                lanes = [Lane(session, each.lane, stored(each.run.spec), actions) for session, each in members]
                begin(self._leadership, self._spec, self._lanes, lanes)
                Trainer(program, evaluator, lanes, self._leadership.tell).run()


def _record_lane(session: Session, assignment: Assignment, device: str) -> None:
    before = session.run.document.get("device", device)
    if before != device:
        session.event(
            "device", f"this session began on {before} and continues on {device}: results may differ in their last bits"
        )
    session.run.record(device=device, lane=assignment.lane, lanes=assignment.lanes)


def groups(runs: Iterable[Run]) -> list[list[Row]]:
    """The sessions by program, and of each program by rows; new sessions of a trial get lanes in order.

    One whose environments step on the host is the only lane of its program.
    """
    known: list[Assignment] = []
    new: dict[Any, list[Run]] = {}
    for run in runs:
        document = run.document
        if steps_on_host(stored(run.spec).env):
            known.append(Assignment(run, 0, 1))
        elif "lanes" in document:
            known.append(Assignment(run, document["lane"], document["lanes"]))
        else:
            new.setdefault((program_key(run.spec), run.path.parent), []).append(run)
    fresh = [Assignment(run, lane, len(trial)) for trial in new.values() for lane, run in enumerate(trial)]
    found: dict[Any, list[Row]] = {}
    for assignment in (*known, *fresh):
        rows = found.setdefault((program_key(assignment.run.spec), assignment.lanes), [])
        _first_free(rows, assignment.lane).append(assignment)
    return list(found.values())


def _first_free(rows: list[Row], lane: int) -> Row:
    """The first row in which nobody has the lane: sessions of two trials may have the same."""
    for row in rows:
        if all(other.lane != lane for other in row):
            return row
    rows.append([])
    return rows[-1]


def program_key(spec: dict[str, Any]) -> str:
    """What of a resolved spec decides the program: all but the traced numbers, and whether those are given at all."""
    paths = {dotted(keys): value for keys, value in leaves(spec)}
    settings = {path: value for path, value in paths.items() if path not in IGNORED and not path.startswith(OF_SEARCH)}
    for path in learner_class(settings["agent.algorithm.name"]).TRACED:
        if settings.get(f"{path}.name", "linear") != "linear":  # a schedule of others is compiled as it is
            continue
        under = [each for each in settings if each == path or each.startswith(f"{path}.")]
        given = [settings.pop(each) for each in under]
        settings[path] = any(value is not None for value in given)
    return repr(sorted(settings.items(), key=lambda item: item[0]))
