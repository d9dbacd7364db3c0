"""`operant search` as it is typed: whole searches of a toy engine, going on, the best one, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import operant as lab
from operant.cli import train
from operant.errors import EXIT_STOPPED
from operant.hpo import resources
from operant.report.search_table import best_trial, read_search, search_rows
from operant.run.checkpoint import hold, list_checkpoints
from operant.run.run import Run, find_sessions
from operant.spec.load import load
from operant.trackers.position import read_positions
from tests.cli.conftest import Operant, Toy
from tests.processes import wait_until
from tests.unit.trackers.conftest import curves
from tests.unit.trackers.event_files import as_float32, raw_values, scalars

SEARCH = """\
  max_trial: 3
  search_sampler: grid
  search_scheduler: {grace_period: 50, reduction_factor: 3}
search:
  env.kwargs.bonus__choice: [1, 5, 3]
"""


BROKEN_TRACKER = """
from operant.trackers.tracker import Held, Tracker


class Broken(Tracker):
    def open(self, step, rewound):
        return Held()

    def log(self, batch):
        raise ConnectionError("no route to host")
"""


@pytest.fixture
def spec(toy: Toy) -> Path:
    file = toy.folder / "toy.yaml"
    toy.write(sessions=1)
    file.write_text(file.read_text() + SEARCH)
    return file


def _search(here: Path) -> Path:
    (place,) = (here / "runs" / "toy").iterdir()
    return place


def test_a_search_ranks_its_trials_and_goes_on_with_more(operant: Operant, spec: Path, here: Path) -> None:
    result = operant("search", "toy.yaml", "--workers", "1")
    assert result.code == 0, result.err
    assert "toy: 3 trials, sampler grid, frames 50 -> 100, 1 worker" in result.out
    assert "trial 1: rung 2 of 2, 100 frames, score 105.0" in result.out
    place = _search(here)
    assert [(row.settings["env.kwargs.bonus"], row.rung, row.state) for row in search_rows(place)] == [
        (1, 1, "paused"),
        (5, 2, "done"),
        (3, 1, "paused"),
    ]
    attempts = [run.attempts for run in find_sessions(place)]
    assert attempts == [1, 2, 1]

    # The same command is over; a larger one goes on, and nothing is trained again.
    wider = operant(
        "search", f"toy/{place.name}", "--trials", "4", "-s", "search.env.kwargs.bonus__choice=[1, 5, 3, 9]"
    )
    assert wider.code == 0, wider.err
    assert "continues, 3 trials begun" in wider.out
    assert [run.attempts for run in find_sessions(place)][:3] == attempts
    assert best_trial(place).settings == {"env.kwargs.bonus": 9}

    assert "done" in operant("runs").out
    assert operant("show", "toy").out.count("paused") == 2
    written = operant("search", "best", "toy", "--write", "best.yaml")
    assert "trial 3" in written.out
    assert load("best.yaml", None, []).spec.env.kwargs == {"bonus": 9}
    assert "exists already" in operant("search", "best", "toy", "--write", "best.yaml").err
    assert (place / "report" / "search_parallel_coordinates.png").is_file()


def test_a_search_is_stored_with_its_figures(operant: Operant, spec: Path, here: Path) -> None:
    result = operant("search", "toy.yaml", "--workers", "1", "--trials", "2", "-s", "meta.sync=store")
    assert result.code == 0, result.err
    assert "stored at store" in result.err
    assert operant("pull", "store", "--root", "other").code == 0
    place = _search(here)
    pulled = here / "other" / "toy" / place.name / "report" / "search_parallel_coordinates.png"
    assert pulled.read_bytes() == (place / "report" / pulled.name).read_bytes()


@pytest.mark.slow
def test_trackers_follow_every_trial_over_its_rungs(operant: Operant, spec: Path, here: Path) -> None:
    pytest.importorskip("tensorboard")
    half = ("--trials", "2", "-s", "meta.search_scheduler.reduction_factor=2")
    result = operant("search", "toy.yaml", "--workers", "1", "-s", "meta.track=[tensorboard]", *half)
    assert result.code == 0, result.err
    sessions = find_sessions(_search(here))
    assert [run.attempts for run in sessions] == [1, 2]
    for run in sessions:
        _assert_tracked(run)


def _assert_tracked(run: Run) -> None:
    """Trackers outlive a search until everything is written."""
    last = curves(run)["frames"][-1][0]
    assert wait_until(lambda: _position(run) == ("complete", last), 120)
    assert scalars(run) == as_float32(curves(run))
    assert len(raw_values(run)) == len(set(raw_values(run)))


def _position(run: Run) -> tuple[str, int] | None:
    position = read_positions(run.path).get("tensorboard")
    return position and (position.state, position.step)


@pytest.mark.slow
def test_a_tracker_that_fails_is_told_with_its_trial_and_fails_none(operant: Operant, spec: Path, here: Path) -> None:
    (here / "broken_tracker.py").write_text(BROKEN_TRACKER)
    slow = ("-s", "env.kwargs.pause=1")
    result = operant("search", "toy.yaml", "--workers", "1", "-s", "meta.track=[broken_tracker:Broken]", *slow)
    assert result.code == 0, result.err
    assert "trial_001 session_0 track broken_tracker:Broken: ConnectionError: no route to host" in result.out
    assert [row.state for row in search_rows(_search(here))] == ["paused", "done", "paused"]


POPULATION = """\
  max_trial: 2
  search_sampler: grid
  search_scheduler: {name: pbt, grace_period: 50, resample_probability: 0.0, perturbation_factors: [2.0]}
search:
  agent.algorithm.training_epoch__randint: [1, 5]
"""


@pytest.fixture
def population(toy: Toy) -> Path:
    file = toy.folder / "toy.yaml"
    toy.write(sessions=1, bonus_of="training_epoch")
    file.write_text(file.read_text() + POPULATION)
    return file


def test_a_population_forks_its_best_and_says_what_it_did(operant: Operant, population: Path, here: Path) -> None:
    import optuna

    result = operant("search", "toy.yaml", "--workers", "1")
    assert result.code == 0, result.err
    assert "toy: a population of 2 trials, sampler grid, frames 50 -> 100, 1 worker" in result.out
    assert "trial 2: fork of trial 1 at 50 frames, in place of trial 0, training_epoch 4" in result.out
    assert "trial 2: rung 1 of 2" not in result.out
    assert "2 of 2 trials and 1 fork, 200 frames in all" in result.out
    place = _search(here)
    ancestry = [(row.state, row.parent, row.forked_at, row.replaces) for row in search_rows(place)]
    assert ancestry == [("replaced", None, 0, None), ("done", None, 0, None), ("done", 1, 50, 0)]
    assert not any(place.rglob("held"))
    assert operant("runs", "--json").document["runs"][0]["frames"] == 200

    # A worker that was killed at the very end has left a mark, which the next one takes away.
    hold(list_checkpoints(find_sessions(place)[2].checkpoints)[-1])
    assert operant("search", f"toy/{place.name}").code == 0
    assert not any(place.rglob("held"))

    shown = operant("show", "toy").out
    assert "1 at 50" in shown
    assert "--trials" not in shown
    refused = operant("search", f"toy/{place.name}", "--trials", "8")
    assert refused.code == 2
    assert "meta.max_trial cannot change while a search goes on" in refused.err

    # What is written is one setting, and it says of which schedule.
    written = operant("search", "best", "toy", "--write", "best.yaml")
    assert "wrote best.yaml: a spec with the last of these settings, for a run of its own from frame 0" in written.out
    said = (here / "best.yaml").read_text().partition("\ntoy:")[0].splitlines()
    assert [line.split()[1:] for line in said[-2:]] == [["0", "1", "2"], ["50", "2", "4"]]
    assert load("best.yaml", None, []).spec.agent.algorithm.model_dump()["training_epoch"] == 4

    (summary,) = optuna.get_all_study_summaries(url := f"sqlite:///{place / 'search.db'}")
    trials = optuna.load_study(study_name=summary.study_name, storage=url).trials
    assert [trial.state.name for trial in trials] == ["PRUNED", "COMPLETE", "COMPLETE"]
    assert trials[2].user_attrs["fork"] == {"parent": 1, "replaces": 0}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("env.kwargs.bonus__choice: [1, 5]", "pbt cannot vary env.kwargs.bonus"),
        ("env.num_envs__choice: [1, 2]", "pbt cannot vary env.num_envs"),
        ("env.max_frame__choice: [150, 300]", "pbt cannot vary env.max_frame"),
        ("agent.net.hidden__choice: [[8], [16]]", "pbt cannot vary agent.net.hidden"),
        ("meta.eval_episodes__randint: [1, 5]", "pbt cannot vary meta.eval_episodes"),
    ],
)
def test_what_a_fork_cannot_change_is_refused_in_a_population(
    operant: Operant, population: Path, here: Path, line: str, said: str
) -> None:
    population.write_text(population.read_text().replace("agent.algorithm.training_epoch__randint: [1, 5]", line))
    refused = operant("search", "toy.yaml")
    assert refused.code == 2
    assert said in refused.err
    assert "which a fork has from its parent: " in refused.err
    assert not (here / "runs").exists()


def test_a_failed_trial_is_told_and_the_others_go_on(operant: Operant, spec: Path, here: Path) -> None:
    spec.write_text(spec.read_text().replace("bonus__choice: [1, 5, 3]", "fail_at__choice: [10, 1000, 2000]"))
    result = operant("search", "toy.yaml", "--workers", "1", "--json")
    document = result.document
    assert (document["exit"], document["best"]) == (0, 1)
    assert [trial["state"] for trial in document["trials"]] == ["failed", "done", "paused"]
    assert "trial 0 at rung 0 failed: RuntimeError: the toy broke" in result.err


def test_what_would_make_earlier_trials_others_is_refused(operant: Operant, spec: Path, here: Path) -> None:
    assert operant("search", "toy.yaml", "--workers", "1", "--trials", "1").code == 0
    place = f"toy/{_search(here).name}"
    refused = operant("search", place, "-s", "env.max_frame=500")
    assert refused.code == 2
    assert "env.max_frame cannot change while a search goes on" in refused.err


def test_rows_that_cannot_be_read_are_named(operant: Operant, spec: Path, here: Path) -> None:
    assert operant("search", "toy.yaml", "--workers", "1", "--trials", "1").code == 0
    place = _search(here)
    rows = place / "trial_000" / "session_0" / "metrics.jsonl"
    rows.unlink()
    rows.mkdir()
    refused = operant("search", f"toy/{place.name}", "--trials", "2")
    assert refused.code == 3
    assert "trial_000/session_0/metrics.jsonl: the file cannot be read: Is a directory" in refused.err
    assert "move it away" in refused.err
    assert "defect" not in refused.err
    assert "unreadable" in operant("runs").out


def test_search_from_python(spec: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "slots", lambda asked: [resources.Slot(1)] * 8)
    found = lab.search("toy.yaml", trials=2)
    # No more are decided on at once than there are.
    assert (read_search(found.path) or {})["workers"] == 2
    assert (found.state, found.best_settings) == ("done", {"env.kwargs.bonus": 5})
    assert found.best.path.name == "trial_001"


def test_a_forked_session_that_is_stopped_before_it_trains_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple] = []

    def stopped(folders: list[Path], until: int | None) -> int:
        asked.append((folders, until))
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "session", stopped)
    assert train._forked_session(["session", "a", "b", "--until", "50"]) == EXIT_STOPPED
    assert train._forked_session(["session", "a"]) == EXIT_STOPPED
    assert asked == [([Path("a"), Path("b")], 50), ([Path("a")], None)]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("search: {agent.algorithm.gama__uniform: [0.9, 1.0]}", "did you mean gamma?"),
        ("search: {}", "search names no setting"),
        ("search: {agent.algorithm.gamma__uniform: [0.9, 1.5]}", "must be 0 to 1"),
        ("", "has no search block"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused_before_anything_starts(
    operant: Operant, toy: Toy, here: Path, block: str, said: str
) -> None:
    file = here / "toy.yaml"
    file.write_text(file.read_text() + block + "\n")
    refused = operant("search", "toy.yaml")
    assert refused.code == 2
    assert said in refused.err
    assert not (here / "runs").exists()


def test_without_optuna_the_install_command_is_named(
    operant: Operant, spec: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    refused = operant("search", "toy.yaml")
    assert refused.code == 2
    assert "a search needs the package optuna, which is not installed" in refused.err
    assert "search" in refused.err.splitlines()[-1]


def test_check_draws_from_the_space(operant: Operant, spec: Path) -> None:
    assert "search: 3 trials, such as bonus " in operant("check", "toy.yaml").out


def test_a_database_that_does_not_answer_is_one_line(operant: Operant, spec: Path, here: Path) -> None:
    refused = operant("search", "toy.yaml", "--storage", "postgresql://me:sesame@127.0.0.1:1/lab", "--json")
    assert refused.code == 3
    assert "does not answer" in json.loads(refused.out)["cause"]
    assert "sesame" not in refused.out + refused.err
    assert not (here / "runs").exists()
