"""What runs cost: clock, CPU- and GPU-seconds, tokens, energy and money, added up from every `cost.json`.

Each attempt counts, killed ones and repeated work too. CPU time, frames and tokens add up. The clock does not: of
sessions that trained side by side the wall time is the time in which any of them ran. What an hour of a machine or of
a GPU gives is divided evenly among the sessions of one experiment that ran there at that moment, so the shares of
sessions and trials add up to what the experiment has cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from operant.report.formatting import compact, duration
from operant.report.stats import Floats
from operant.run.cost import read_attempts
from operant.run.layout import EXPERIMENT_FILE, PROVENANCE_FOLDER, RUN_FILE, session_paths, trial_paths

HOUR = 3600.0


@dataclass(frozen=True)
class Attempt:
    """One attempt at a session as its account tells it; None is "not known"."""

    session: Path
    machine: str
    began: float
    ended: float
    frames: int
    tokens: int
    start_seconds: float
    cpu_seconds: float
    gpus: tuple[str, ...] | None
    cpu_joules: float | None
    gpu_joules: float | None
    price_per_hour: float | None

    @property
    def length(self) -> float:
        """Seconds from its beginning to its end."""
        return max(self.ended - self.began, 1e-9)


@dataclass(frozen=True)
class Cost:
    """What some sessions cost together. None is "not known", never 0.

    `wall_seconds` is the time in which any of them ran; `machine_seconds` is their share of the machines, which
    `dollars` follow from. `untold` counts sessions that ran and have no account, as those of older versions.
    """

    wall_seconds: float
    machine_seconds: float
    cpu_seconds: float
    gpu_seconds: float | None
    frames: int
    tokens: int
    joules: float | None
    dollars: float | None
    attempts: int
    untold: int = 0

    @property
    def compute_seconds(self) -> float:
        """CPU- and GPU-seconds together; GPUs that are not known count as none."""
        return self.cpu_seconds + (self.gpu_seconds or 0.0)

    def as_dict(self) -> dict[str, Any]:
        """The numbers for `--json`."""
        return asdict(self)

    def text(self) -> str:
        """`41 s wall, 2 min 31 s CPU, 12k tokens, $0.02`: what is known and not nothing."""
        parts = [f"{duration(self.wall_seconds)} wall", f"{duration(self.cpu_seconds)} CPU"]
        parts += [f"{duration(self.gpu_seconds)} GPU"] if self.gpu_seconds else []
        parts += [f"{compact(self.tokens)} tokens"] if self.tokens else []
        parts += [energy(self.joules)] if self.joules is not None else []
        parts += [money(self.dollars)] if self.dollars is not None else []
        again = [f"{self.attempts} attempts"] if self.attempts > 1 else []
        sessions = "1 session" if self.untold == 1 else f"{self.untold} sessions"
        untold = [f"without {sessions} that kept no account"] if self.untold else []
        return ", ".join([*parts, *again, *untold])


def energy(joules: float) -> str:
    """`850 J`, `12.5 kJ`, `3.1 MJ`"""
    text = compact(joules)
    return f"{text[:-1]} {text[-1]}J" if text[-1].isalpha() else f"{text} J"


def money(dollars: float) -> str:
    """`$12.40`, `$0.05`, `$0.0031`: cents, or two digits of what is less than one."""
    return f"${dollars:,.2f}" if dollars >= 0.01 or dollars == 0 else f"${float(f'{dollars:.2g}'):g}"


@dataclass(frozen=True)
class Ledger:
    """All attempts of one experiment, and how much of its machines each session had to itself."""

    attempts: tuple[Attempt, ...]
    sessions: tuple[Path, ...]
    price: float | None = None
    _rates: dict[str, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, path: Path, price: float | None = None) -> Ledger:
        """The ledger of the experiment that a directory is or lies in; `price` is for attempts that have none."""
        sessions = _sessions(_experiment(Path(path).absolute()))
        attempts = tuple(attempt for session in sessions for attempt in _read(session))
        ledger = cls(attempts, tuple(sessions), price)
        machines = {attempt.machine for attempt in attempts}
        gpus = {_gpu(attempt, gpu) for attempt in attempts for gpu in attempt.gpus or ()}
        for name in machines:
            ledger._rates[name] = _rate([a for a in attempts if a.machine == name])
        for name in gpus:
            ledger._rates[name] = _rate([a for a in attempts if name in (_gpu(a, gpu) for gpu in a.gpus or ())])
        return ledger

    def cost(self, path: Path | None = None) -> Cost | None:
        """What the sessions in a directory cost, by default all; None where none has an account."""
        wanted = [s for s in self.sessions if path is None or _within(s, Path(path).absolute())]
        inside = [attempt for attempt in self.attempts if attempt.session in wanted]
        if not inside:
            return None
        told = {attempt.session for attempt in inside}
        shares = [self._share(attempt.machine, attempt) for attempt in inside]
        return Cost(
            wall_seconds=_union(inside),
            machine_seconds=sum(shares),
            cpu_seconds=sum(attempt.cpu_seconds for attempt in inside),
            gpu_seconds=_total(self._gpu_seconds(attempt) for attempt in inside),
            frames=sum(attempt.frames for attempt in inside),
            tokens=sum(attempt.tokens for attempt in inside),
            joules=_total(self._joules(attempt, share) for attempt, share in zip(inside, shares, strict=True)),
            dollars=_total(self._dollars(attempt, share) for attempt, share in zip(inside, shares, strict=True)),
            attempts=max(sum(attempt.session == session for attempt in inside) for session in told),
            untold=sum((s / PROVENANCE_FOLDER).is_dir() for s in wanted if s not in told),
        )

    def dollars_at(self, session: Path, seconds: Floats) -> Floats:
        """What a session had cost when its training clock stood at these seconds; NaN where no price is known.

        A row belongs to the last attempt that began before it. Attempts before that one are paid in full, also what
        they did that had to be done again.
        """
        own = [attempt for attempt in self.attempts if attempt.session == Path(session).absolute()]
        if not own:
            return np.full(len(seconds), np.nan)
        spent, before = np.zeros(len(seconds)), 0.0
        for attempt in own:
            share = self._share(attempt.machine, attempt)
            dollars = self._dollars(attempt, share)
            if dollars is None:
                return np.full(len(seconds), np.nan)
            inside = np.clip((seconds - attempt.start_seconds) / attempt.length, 0.0, 1.0)
            spent = np.where(seconds >= attempt.start_seconds, before + dollars * inside, spent)
            before += dollars
        return spent

    def _share(self, name: str, attempt: Attempt) -> float:
        times, shares = self._rates[name]
        began, ended = np.interp([attempt.began, attempt.ended], times, shares)
        return float(ended - began)

    def _gpu_seconds(self, attempt: Attempt) -> float | None:
        if attempt.gpus is None:
            return None
        return sum(self._share(_gpu(attempt, gpu), attempt) for gpu in attempt.gpus)

    def _joules(self, attempt: Attempt, share: float) -> float | None:
        """The energy that processor and GPUs used meanwhile, as far as the attempt had them to itself."""
        if attempt.cpu_joules is None and attempt.gpu_joules is None:
            return None
        on_gpus = (self._gpu_seconds(attempt) or 0.0) / max(len(attempt.gpus or ()), 1)
        used = (attempt.cpu_joules or 0.0) * share + (attempt.gpu_joules or 0.0) * on_gpus
        return used / attempt.length

    def _dollars(self, attempt: Attempt, share: float) -> float | None:
        price = self.price if attempt.price_per_hour is None else attempt.price_per_hour
        return None if price is None else price * share / HOUR


def cost_of(path: Path, price: float | None = None) -> Cost | None:
    """What the sessions in a directory cost: of an experiment or search, a trial or a session."""
    return Ledger.of(path, price).cost(Path(path))


def added(costs: Sequence[Cost]) -> Cost:
    """The costs of several experiments together; their clocks add up, as if one had run after the other."""
    columns = {name: [getattr(cost, name) for cost in costs] for name in asdict(costs[0])}
    most = {"attempts": max(columns.pop("attempts"))}
    return Cost(**{name: _total(values) for name, values in columns.items()}, **most)  # type: ignore[arg-type]


def search_cost(trial: Path) -> tuple[int, Cost] | None:
    """How many trials the search had that a trial comes from, and what they cost; None where it is of no search."""
    experiment = _experiment(Path(trial))
    trials = trial_paths(experiment)
    cost = cost_of(experiment) if len(trials) > 1 else None
    return None if cost is None else (len(trials), cost)


def _rate(attempts: Sequence[Attempt]) -> tuple[Floats, Floats]:
    """Times, and up to each of them the time that one of those who were there had to itself, were it always there."""
    times = np.unique([[a.began, a.ended] for a in attempts])
    began, ended = (np.sort([getattr(a, name) for a in attempts]) for name in ("began", "ended"))
    present = np.searchsorted(began, times[:-1], "right") - np.searchsorted(ended, times[:-1], "right")
    lengths = np.where(present > 0, np.diff(times) / np.maximum(present, 1), 0.0)
    return times, np.concatenate([[0.0], np.cumsum(lengths)])


def _union(attempts: Sequence[Attempt]) -> float:
    """The time in which any of them ran."""
    total, until = 0.0, -np.inf
    for began, ended in sorted((attempt.began, attempt.ended) for attempt in attempts):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total


def _total(values: Iterable[float | None]) -> float | None:
    """The sum; None as soon as one of them is not known."""
    every = list(values)
    return None if any(value is None for value in every) else sum(value or 0 for value in every)


def _gpu(attempt: Attempt, gpu: str) -> str:
    return f"{attempt.machine} {gpu}"


def _read(session: Path) -> list[Attempt]:
    found = []
    for entry in read_attempts(session):
        with suppress(KeyError, ValueError, TypeError):
            found.append(_attempt(session, entry))
    return found


def _attempt(session: Path, entry: dict[str, Any]) -> Attempt:
    frames, tokens, seconds = (entry.get(key) or [0, 0] for key in ("frames", "tokens", "seconds"))
    gpus = entry.get("gpus")
    return Attempt(
        session=session,
        machine=str(entry.get("machine")),
        began=datetime.fromisoformat(entry["began"]).timestamp(),
        ended=datetime.fromisoformat(entry["ended"]).timestamp(),
        frames=int(frames[1] - frames[0]),
        tokens=int(tokens[1] - tokens[0]),
        start_seconds=float(seconds[0]),
        cpu_seconds=float(entry.get("cpu_seconds", 0.0)),
        gpus=None if gpus is None else tuple(gpus),
        cpu_joules=entry.get("cpu_joules"),
        gpu_joules=entry.get("gpu_joules"),
        price_per_hour=entry.get("price_per_hour"),
    )


def _experiment(path: Path) -> Path:
    """The experiment that a directory is or lies in; of a directory that is moved out of one, itself."""
    for place in (path, *path.parents[:2]):
        if (place / EXPERIMENT_FILE).is_file():
            return place
    return path


def _sessions(experiment: Path) -> list[Path]:
    if (experiment / RUN_FILE).is_file():
        return [experiment]
    trials = trial_paths(experiment) or [experiment]
    return [session for trial in trials for session in session_paths(trial)]


def _within(session: Path, folder: Path) -> bool:
    return folder == session or folder in session.parents
