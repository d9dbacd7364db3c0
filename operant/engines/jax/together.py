"""Which sessions share a program: those whose specs differ in nothing but traced numbers.

How many lanes a program has, and which lane a session is, belong to what decides its last bits.
Both are kept in run.json, so a session that is resumed alone still computes in its old place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from operant.engines.jax.learners import LEARNERS, build_learner
from operant.engines.jax.loop import Course, Lane, in_phase
from operant.engines.jax.program import Program, prepare_jax
from operant.run.run import Run
from operant.run.session import Session
from operant.run.stop import StopRequest
from operant.spec.errors import dotted
from operant.spec.reading.document import leaves
from operant.spec.stored import stored

UNREAD = ("name", "search", "meta.seed", "meta.max_session")


@dataclass(frozen=True)
class Place:
    """A session and where it computes."""

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


def train_group(places: Sequence[Place], until: int | None, stop: StopRequest) -> None:
    """Train the sessions of one program."""
    specs = [stored(place.run.spec) for place in places]
    device = prepare_jax(specs[0])
    with ExitStack() as stack:
        sessions = [stack.enter_context(place.run.session(until, stop)) for place in places]
        for place, session in zip(places, sessions, strict=True):
            _note_place(session, place, device)
        with in_phase(sessions, "building"):
            learner = build_learner(specs[0])
        members = zip(sessions, (place.lane for place in places), specs, strict=True)
        lanes = [Lane(*each, learner.env.actions) for each in members]
        Course(Program(learner, places[0].lanes), lanes).run()


def _note_place(session: Session, place: Place, device: str) -> None:
    before = session.run.document.get("device", device)
    if before != device:
        session.event("device", f"this session began on {before} and goes on on {device}: not bit for bit as it was")
    session.run.record(device=device, lane=place.lane, lanes=place.lanes)


def groups(runs: Iterable[Run]) -> list[list[Place]]:
    """The sessions by program, each in its place; a new session gets the next one beside others of its kind."""
    found: dict[Any, list[Place]] = {}
    new: dict[str, list[Run]] = {}
    for run in runs:
        document = run.document
        form = program_form(run.spec)
        if "lanes" in document:
            place = Place(run, document["lane"], document["lanes"])
            kind = (form, place.lanes, _free_row(found, form, place))
            found.setdefault(kind, []).append(place)
        else:
            new.setdefault(form, []).append(run)
    fresh = [[Place(run, i, len(each)) for i, run in enumerate(each)] for each in new.values()]
    return [*found.values(), *fresh]


def _free_row(found: dict[Any, list[Place]], form: str, place: Place) -> int:
    """Sessions of two trials may have had the same lane; they cannot both have it in one program."""
    row = 0
    while any(other.lane == place.lane for other in found.get((form, place.lanes, row), [])):
        row += 1
    return row


def program_form(spec: dict[str, Any]) -> str:
    """What of a resolved spec decides the program: all but the traced numbers, and whether those are given at all."""
    form = {path: value for keys, value in leaves(spec) if (path := dotted(keys)) not in UNREAD}
    for path in LEARNERS[form["agent.algorithm.name"]].TRACED:
        under = [each for each in form if each == path or each.startswith(f"{path}.")]
        given = [form.pop(each) for each in under]
        form[path] = any(value is not None for value in given)
    return repr(sorted(form.items(), key=lambda item: item[0]))
