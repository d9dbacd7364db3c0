"""The whole contract on one spec, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.contract.checks import CHECKS, Broken, MakeRun, Subject
from operant.contract.processes import finish
from operant.errors import OperantError
from operant.run.records import Records
from operant.run.run import Run
from operant.spec.schema import Spec

SEED = 7
TRAINS = "trains"


@dataclass(frozen=True)
class Finding:
    """One promise: whether it is kept, and what was tried or what is wrong."""

    promise: str
    kept: bool
    detail: str

    def __str__(self) -> str:
        return f"ok  {self.promise} ({self.detail})" if self.kept else f"FAILED  {self.promise}: {self.detail}"


def run_contract(spec: Spec, folder: Path) -> Iterator[Finding]:
    """Train `spec` in `folder` undisturbed, then try every promise; nothing follows a training that failed."""
    make = session_maker(spec, folder)
    whole = make("whole", {})
    trained = _finding(TRAINS, lambda: _trained(whole))
    yield trained
    if trained.kept:
        subject = Subject(whole, Records.of(whole), make)
        for promise, check in CHECKS.items():
            yield _finding(promise, lambda check=check: check(subject))


def session_maker(spec: Spec, folder: Path, seed: int = SEED) -> MakeRun:
    """Makes sessions of one spec and seed, side by side in a folder."""

    def make(name: str, meta: Mapping[str, Any]) -> Run:
        data = spec.model_dump(mode="json")
        data["meta"] |= meta
        threads = spec.meta.threads or 1
        return Run.create(folder / name, name=spec.name, spec=data, seed=seed, session=0, threads=threads)

    return make


def _trained(run: Run) -> str:
    finish(run)
    return f"{run.max_frame:,} frames of {run.spec['agent']['algorithm']['name']} on {run.spec['env']['name']}"


def _finding(promise: str, check: Callable[[], str]) -> Finding:
    """What a check found; whatever an outsider's part raises is a promise that is not kept."""
    try:
        return Finding(promise, True, check())
    except (Broken, OperantError) as problem:
        return Finding(promise, False, str(problem))
    except Exception as problem:
        return Finding(promise, False, f"{type(problem).__name__}: {problem}")
