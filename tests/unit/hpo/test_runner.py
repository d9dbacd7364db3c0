"""Which jobs of a search share a process, and what becomes of them when it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.errors import EXIT_DONE, EXIT_FAILED
from operant.hpo import runner as module
from operant.hpo.resources import Slot
from operant.hpo.runner import LocalRunner, Work
from operant.hpo.trials import make_runs
from operant.launch.launcher import Resources, Ticket
from operant.run.run import Run
from operant.spec.schema import Spec

pytest.importorskip("jax")

Train = Callable[[list[Run]], int]


class FakeLauncher:
    """Processes that are over at once; what each does with its sessions, and its exit code, is given."""

    def __init__(self, train: Train) -> None:
        self.train = train
        self.started: list[list[str]] = []
        self.codes: list[int] = []

    def submit(self, argv: list[str], resources: Resources, name: str) -> Ticket:
        words = argv[argv.index("session") + 1 :]
        folders = words[: words.index("--until")] if "--until" in words else words
        self.started.append([Path(folder).parent.name for folder in folders])
        self.codes.append(self.train([Run.open(Path(folder)) for folder in folders]))
        return Ticket(name, len(self.codes) - 1, resources.log)

    def poll(self, ticket: Ticket) -> int:
        return self.codes[ticket.ident]

    def cancel(self, ticket: Ticket) -> None:
        raise AssertionError("nothing is stopped here")


def finish(runs: list[Run]) -> int:
    for run in runs:
        run.record(state="done", attempts=run.attempts + 1)
    return EXIT_DONE


def spec(gpu: float = 0, sessions: int = 1, **algorithm: Any) -> Spec:
    meta = {"max_session": sessions, "search_resources": {"gpu": gpu, "lanes": 4}}
    agent = {"algorithm": {"name": "ppo", **algorithm}}
    return Spec.model_validate({"name": "searched", "engine": "jax", "agent": agent, "meta": meta})


def work(folder: Path, number: int, until: int | None = None, **settings: Any) -> Work:
    return Work(number, tuple(make_runs(folder, number, spec(**settings))), until)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[LocalRunner, FakeLauncher]]:
    def start(works: list[Work], slots: int = 1, train: Train = finish) -> tuple[LocalRunner, FakeLauncher]:
        launcher = FakeLauncher(train)
        monkeypatch.setattr(module, "LocalLauncher", lambda: launcher)
        runner = LocalRunner(spec(), [Slot(1)] * slots, tmp_path, lanes=4)
        assert runner.free == 4 * slots
        runner.start(works)
        return runner, launcher

    return start


def ended(runner: LocalRunner) -> dict[int, str]:
    """The verdicts of all jobs, when nothing is left to do."""
    verdicts: dict[int, str] = {}
    while runner.running:
        for over in runner.advance():
            assert over.work.number not in verdicts
            verdicts[over.work.number] = ", ".join(outcome.verdict for outcome in over.outcomes)
        runner.start([])
    return verdicts


def test_jobs_that_agree_share_a_process(tmp_path: Path, started: Any) -> None:
    gammas = (0.9, 0.95, 0.99, 0.97, 0.98, 0.96)
    runner, launcher = started([work(tmp_path, number, gamma=gamma) for number, gamma in enumerate(gammas)])
    assert runner.free == 0
    assert ended(runner) == dict.fromkeys(range(6), "done")
    assert launcher.started == [
        ["trial_000", "trial_001", "trial_002", "trial_003"],
        ["trial_004", "trial_005"],
    ]


def test_jobs_of_other_programs_and_other_rungs_train_apart(tmp_path: Path, started: Any) -> None:
    works = [
        work(tmp_path, 0, gamma=0.9),
        work(tmp_path, 1, time_horizon=256),
        work(tmp_path, 2, until=64),
        work(tmp_path, 3, gamma=0.8),
    ]
    runner, launcher = started(works, train=lambda runs: finish(runs))
    ended(runner)
    assert launcher.started == [["trial_000", "trial_003"], ["trial_001"], ["trial_002"]]


def test_free_slots_get_equal_shares(tmp_path: Path, started: Any) -> None:
    _, launcher = started([work(tmp_path, number) for number in range(4)], slots=2)
    assert launcher.started == [["trial_000", "trial_001"], ["trial_002", "trial_003"]]


def test_a_failed_job_fails_alone(tmp_path: Path, started: Any) -> None:
    def train(runs: list[Run]) -> int:
        """Trial 1 breaks its process, before trial 2 was begun."""
        names = [run.path.parent.name for run in runs]
        broken = names.index("trial_001") if "trial_001" in names else len(runs)
        finish(runs[:broken])
        for run in runs[broken : broken + 1]:
            run.record(state="failed", error="the toy broke", attempts=run.attempts + 1)
            return EXIT_FAILED
        return EXIT_DONE

    runner, launcher = started([work(tmp_path, number) for number in range(4)], train=train)
    assert ended(runner) == {0: "done", 1: "failed", 2: "done", 3: "done"}
    assert launcher.started == [
        ["trial_000", "trial_001", "trial_002", "trial_003"],
        ["trial_001"],
        ["trial_002", "trial_003"],
    ]


def test_a_process_that_does_not_come_to_train_is_not_tried_again(tmp_path: Path, started: Any) -> None:
    runner, launcher = started([work(tmp_path, number) for number in range(2)], train=lambda runs: EXIT_FAILED)
    assert ended(runner) == {0: "failed", 1: "failed"}
    assert len(launcher.started) == 1


def test_what_is_done_is_not_trained_again(tmp_path: Path, started: Any) -> None:
    """After a kill the process holds those that it had not finished."""
    works = [work(tmp_path, number) for number in range(3)]
    finish(list(works[1].runs))
    runner, launcher = started(works)
    assert ended(runner) == dict.fromkeys(range(3), "done")
    assert launcher.started == [["trial_000", "trial_002"]]


def test_the_lanes_of_a_trial_follow_from_its_number(tmp_path: Path) -> None:
    def lanes(folder: str, number: int, **settings: Any) -> list[tuple[int, int]]:
        runs = work(tmp_path / folder, number, sessions=2, **settings).runs
        return [(run.document["lane"], run.document["lanes"]) for run in runs]

    # On the CPU those that it has when it is trained by itself; on a GPU its place among four trials.
    assert lanes("cpu", 6) == [(0, 2), (1, 2)]
    assert lanes("gpu", 6, gpu=1) == [(4, 8), (5, 8)]
    assert lanes("gpu", 8, gpu=1) == [(0, 8), (1, 8)]
