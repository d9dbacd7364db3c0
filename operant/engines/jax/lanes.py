"""Which sessions share a program: those whose specs differ in nothing but traced numbers.

How many lanes a program has, and which lane a session is, decide the last bits of its results.
Both are kept in run.json, so a session that is resumed alone still computes in its old lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from operant.engines.jax.learners import build_learner, learner_class
from operant.engines.jax.program import Program, prepare_jax
from operant.engines.jax.trainer import Lane, Trainer, in_phase
from operant.run.run import Run
from operant.run.session import Session
from operant.run.stop import StopRequest
from operant.spec.errors import dotted
from operant.spec.reading.document import leaves
from operant.spec.stored import stored

IGNORED = ("name", "search", "meta.seed", "meta.max_session")


@dataclass(frozen=True)
class Assignment:
    """A session and its lane among the `lanes` of its program."""

    run: Run
    lane: int
    lanes: int


def train_groups(runs: Sequence[Run], until: int | None) -> None:
    """Train the sessions, those that fit together in one program, one program after another."""
    with StopRequest() as stop:
        for group in groups(runs):
            train_group(group, until, stop)
            if stop.requested:
                return


def train_group(assignments: Sequence[Assignment], until: int | None, stop: StopRequest) -> None:
    """Train the sessions of one program."""
    specs = [stored(assignment.run.spec) for assignment in assignments]
    device = prepare_jax(specs[0])
    with ExitStack() as stack:
        sessions = [stack.enter_context(assignment.run.session(until, stop)) for assignment in assignments]
        for assignment, session in zip(assignments, sessions, strict=True):
            _record_lane(session, assignment, device)
        with in_phase(sessions, "building"):
            learner = build_learner(specs[0])
        members = zip(sessions, (assignment.lane for assignment in assignments), specs, strict=True)
        lanes = [Lane(*each, learner.env.actions) for each in members]
        Trainer(Program(learner, assignments[0].lanes), lanes).run()


def _record_lane(session: Session, assignment: Assignment, device: str) -> None:
    before = session.run.document.get("device", device)
    if before != device:
        session.event(
            "device", f"this session began on {before} and continues on {device}: results may differ in their last bits"
        )
    session.run.record(device=device, lane=assignment.lane, lanes=assignment.lanes)


def groups(runs: Iterable[Run]) -> list[list[Assignment]]:
    """The sessions by program, each with its lane; a new session gets the next free one."""
    found: dict[Any, list[Assignment]] = {}
    new: dict[str, list[Run]] = {}
    for run in runs:
        document = run.document
        key = program_key(run.spec)
        if "lanes" in document:
            assignment = Assignment(run, document["lane"], document["lanes"])
            kind = (key, assignment.lanes, _free_row(found, key, assignment))
            found.setdefault(kind, []).append(assignment)
        else:
            new.setdefault(key, []).append(run)
    fresh = [[Assignment(run, i, len(each)) for i, run in enumerate(each)] for each in new.values()]
    return [*found.values(), *fresh]


def _free_row(found: dict[Any, list[Assignment]], key: str, assignment: Assignment) -> int:
    """Sessions of two trials may have had the same lane; they cannot both have it in one program."""
    row = 0
    while any(other.lane == assignment.lane for other in found.get((key, assignment.lanes, row), [])):
        row += 1
    return row


def program_key(spec: dict[str, Any]) -> str:
    """What of a resolved spec decides the program: all but the traced numbers, and whether those are given at all."""
    settings = {path: value for keys, value in leaves(spec) if (path := dotted(keys)) not in IGNORED}
    for path in learner_class(settings["agent.algorithm.name"]).TRACED:
        if settings.get(f"{path}.name", "linear") != "linear":  # a schedule of others is compiled as it is
            continue
        under = [each for each in settings if each == path or each.startswith(f"{path}.")]
        given = [settings.pop(each) for each in under]
        settings[path] = any(value is not None for value in given)
    return repr(sorted(settings.items(), key=lambda item: item[0]))
