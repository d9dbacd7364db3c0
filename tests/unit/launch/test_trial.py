from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from operant.launch.budget import usable_cores
from operant.launch.launcher import Launcher, Resources, Ticket
from operant.launch.stop_signals import StopSignals
from operant.launch.trial import Outcome, SessionJobs, exit_code, session_argv
from operant.run.run import Run

MakeTrial = Callable[..., list[Run]]


def run_all(
    runs: list[Run],
    launcher: Launcher,
    workers: int,
    *,
    until: int | None = None,
    tick: Callable[[], None] = lambda: None,
    together: bool = False,
) -> list[Outcome]:
    """Drive the jobs to their end, passing signals on as the command line does."""
    jobs = SessionJobs(runs, launcher, workers, until=until, together=together)
    with StopSignals() as signals:
        while jobs.busy:
            jobs.stop(signals.count)
            jobs.advance()
            tick()
    return jobs.outcomes()


class ScriptedLauncher:
    """Ends each job after a number of polls with a given code; remembers what it was asked."""

    def __init__(self, codes: dict[str, int | None], polls: int = 2, code_on_cancel: int = 4) -> None:
        self.codes = codes
        self.polls_left: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.cancelled: list[str] = []
        self.submitted: list[tuple[list[str], Resources, str]] = []
        self.most_at_once = 0
        self._polls = polls
        self._code_on_cancel = code_on_cancel
        self._running: set[int] = set()

    def submit(self, argv: list[str], resources: Resources, name: str) -> Ticket:
        ident = len(self.submitted)
        self.submitted.append((argv, resources, name))
        self.names[ident] = name
        self.polls_left[ident] = self._polls
        self._running.add(ident)
        self.most_at_once = max(self.most_at_once, len(self._running))
        return Ticket(name, ident, resources.log)

    def poll(self, ticket: Ticket) -> int | None:
        self.polls_left[ticket.ident] -= 1
        code = self.codes.get(ticket.name, 0)
        if self.polls_left[ticket.ident] > 0 or code is None:
            return None
        self._running.discard(ticket.ident)
        return code

    def cancel(self, ticket: Ticket) -> None:
        self.cancelled.append(ticket.name)
        self.codes[ticket.name] = self._code_on_cancel
        self.polls_left[ticket.ident] = 1

    def logs(self, ticket: Ticket) -> Iterator[str]:
        return iter(())


def test_all_sessions_run_within_the_workers(make_trial: MakeTrial) -> None:
    launcher = ScriptedLauncher({})
    outcomes = run_all(make_trial(max_session=5), launcher, workers=2)
    assert [outcome.code for outcome in outcomes] == [0] * 5
    assert launcher.most_at_once == 2


def test_a_failed_session_does_not_stop_its_siblings(make_trial: MakeTrial) -> None:
    outcomes = run_all(make_trial(), ScriptedLauncher({"session_1": 3}), workers=1)
    assert [outcome.verdict for outcome in outcomes] == ["done", "failed", "done"]
    assert exit_code(outcomes) == 3


def test_a_job_is_an_argv_with_the_recorded_threads_and_the_attempts_log(make_trial: MakeTrial) -> None:
    runs = make_trial(threads=3)
    launcher = ScriptedLauncher({})
    run_all(runs, launcher, workers=1, until=50)
    argv, resources, name = launcher.submitted[0]
    assert argv[1:] == ["-m", "operant", "session", str(runs[0].path), "--until", "50"]
    log = runs[0].path / "logs" / "attempt_001.log"
    assert resources == Resources(threads=3, log=log, cores=usable_cores())
    assert name == "session_0"
    assert "--until" not in session_argv(runs[0], None)


def test_sessions_of_one_program_are_one_job_and_share_its_fate(make_trial: MakeTrial) -> None:
    runs = make_trial(max_session=3)
    launcher = ScriptedLauncher({"session_0": 3})
    outcomes = run_all(runs, launcher, 2, until=50, together=True)
    [(argv, _, name)] = launcher.submitted
    assert argv[3:] == ["session", *(str(run.path) for run in runs), "--until", "50"]
    assert name == "session_0"
    assert [outcome.verdict for outcome in outcomes] == ["failed"] * 3
    assert [outcome.run for outcome in outcomes] == runs


def test_the_first_request_asks_everyone_once_and_starts_no_more(make_trial: MakeTrial) -> None:
    runs = make_trial()
    launcher = ScriptedLauncher({"session_0": None, "session_1": None})
    pressed = []

    def press_once() -> None:
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    outcomes = run_all(runs, launcher, workers=2, tick=press_once)
    assert launcher.cancelled == ["session_0", "session_1"]
    assert len(launcher.submitted) == 2
    assert [outcome.verdict for outcome in outcomes] == ["stopped"] * 3
    assert outcomes[2].code is None
    assert exit_code(outcomes) == 4


def test_the_second_request_asks_everyone_again(make_trial: MakeTrial) -> None:
    class Stubborn(ScriptedLauncher):
        """Ends only when cancelled twice."""

        def cancel(self, ticket: Ticket) -> None:
            self.cancelled.append(ticket.name)
            if self.cancelled.count(ticket.name) == 2:
                self.codes[ticket.name] = -signal.SIGKILL

    launcher = Stubborn({"session_0": None})
    ticks = []

    def press_twice() -> None:
        ticks.append(True)
        if len(ticks) in (1, 3):
            os.kill(os.getpid(), signal.SIGINT)

    outcomes = run_all(make_trial(max_session=1), launcher, workers=1, tick=press_twice)
    assert launcher.cancelled == ["session_0", "session_0"]
    assert outcomes[0].verdict == "stopped"


def test_a_session_killed_by_someone_else_failed(make_trial: MakeTrial) -> None:
    outcomes = run_all(make_trial(max_session=1), ScriptedLauncher({"session_0": -9}), workers=1)
    assert outcomes[0].verdict == "failed"
    assert outcomes[0].signal_name == "SIGKILL"


@pytest.mark.parametrize(
    ("codes", "expected"), [([0, 0], 0), ([0, 4], 4), ([4, 3], 3), ([0, None], 4), ([1, 0], 3), ([2], 3)]
)
def test_a_failure_outweighs_a_stop_and_a_stop_outweighs_success(
    make_trial: MakeTrial, codes: list[int | None], expected: int
) -> None:
    run = make_trial(max_session=1)[0]
    assert exit_code([Outcome(run, code, Path("log"), stop_asked=False) for code in codes]) == expected
