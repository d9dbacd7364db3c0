"""The trackers beside a search, as real processes: over the rungs of a trial, and after a worker that was killed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from operant.hpo.runner import Work
from operant.hpo.sidecars import Sidecars
from operant.hpo.study import Study, create_study
from operant.hpo.trials import make_runs
from operant.run.layout import RESOLVED_FILE
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.trackers.position import read_positions
from tests.processes import marked, wait_until
from tests.unit.trackers.conftest import curves, write
from tests.unit.trackers.event_files import as_float32, raw_values, scalars

SPEC: dict[str, Any] = {
    "name": "searched",
    "env": {"name": "CartPole-v1", "max_frame": 2000},
    "agent": {"algorithm": {"name": "ppo"}},
    "meta": {"max_session": 1, "log_frequency": 100, "save_frequency": 300},
    "search": {"agent.algorithm.gamma__uniform": [0.9, 0.99]},
}


def study_with(track: list[str], folder: Path) -> Study:
    spec = Spec.model_validate({**SPEC, "meta": {**SPEC["meta"], "track": track}})
    told: dict[str, Any] = {"source_text": "", "source_suffix": ".yaml", "command": [], "storage": None, "workers": 1}
    return create_study(spec, root=folder, out=folder / "search", **told)


def position(run: Run) -> tuple[str, int] | None:
    found = read_positions(run.path).get("tensorboard")
    return found and (found.state, found.step)


def assert_tracked(run: Run, last: int) -> None:
    """Trackers go on by themselves until everything is written."""
    assert wait_until(lambda: position(run) == ("complete", last), 120)
    assert scalars(run) == as_float32(curves(run))
    assert len(raw_values(run)) == len(set(raw_values(run)))


def test_a_trial_is_followed_over_its_rungs_and_caught_up_with(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    study, lines = study_with(["tensorboard"], tmp_path), []
    (run,) = make_runs(study.path, 0, study.spec)
    beside = Sidecars(study, lines.append)
    for number, last in enumerate((500, 900)):
        work = Work(number, (run,), last)
        beside.begin(work)
        write(run, last)
        beside.end(work)
    assert_tracked(run, 900)
    assert wait_until(lambda: not marked(str(run.path)), 120)
    # A worker that was killed together with its trackers: the next one has them send the rest.
    shutil.rmtree(run.path / "track")
    Sidecars(study, lines.append)
    assert_tracked(run, 900)
    assert lines == []


def test_a_tracker_that_cannot_be_imported_any_more_is_told(tmp_path: Path) -> None:
    study, lines = study_with(["tensorboard"], tmp_path), []
    resolved = study.path / RESOLVED_FILE
    resolved.write_text(resolved.read_text().replace('"tensorboard"', '"a_module_that_is_gone:Mine"'))
    beside = Sidecars(study, lines.append)
    (run,) = make_runs(study.path, 0, study.spec)
    beside.begin(Work(0, (run,), 500))
    assert len(lines) == 1
    assert "a_module_that_is_gone" in lines[0]
    assert not (run.path / "track").exists()
