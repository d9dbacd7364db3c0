from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from operant.run.run import Run
from operant.spec.settings.trackers import MlflowSpec
from operant.trackers.mlflow import MlflowTracker
from operant.trackers.position import PositionFile
from operant.trackers.process import follow
from operant.trackers.tracker import Batch
from tests.unit.trackers.conftest import MakeRun, curves, kill_self, killed_at, write

pytest.importorskip("mlflow")
pytest.importorskip("sqlalchemy")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of MLflow and SQLAlchemy


def test_the_store_has_the_numbers_of_the_rows_through_kills_and_resumes(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    monkeypatch.chdir(tmp_path)  # MLflow puts artifacts into the working directory
    settings = MlflowSpec(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db", tags=("team=rl",))
    run = make_run()
    write(run, 800)
    _die_at_the_third_row(run, settings, monkeypatch)
    assert follow(settings, [run.path], once=True) == 0
    # The resume trains 700 and 800 again; MLflow keeps the numbers that it has.
    before = curves(run)
    for folder in run.checkpoints.glob("*00800"):
        os.replace(folder, folder.with_name("gone"))
    write(run, 2000)
    PositionFile(run.path, "mlflow").path.unlink()
    assert follow(settings, [run.path], once=True) == 0
    client = MlflowClient(tracking_uri=settings.tracking_uri)
    assert before["train/return"] == curves(run)["train/return"][:8]
    [found] = client.search_runs([each.experiment_id for each in client.search_experiments()])
    logged = {
        key: [(each.step, each.value) for each in client.get_metric_history(found.info.run_id, key)]
        for key in found.data.metrics
    }
    assert {key: sorted(points) for key, points in logged.items()} == curves(run)
    assert found.info.status == "FINISHED"
    assert (found.data.tags["team"], found.data.params["env.max_frame"]) == ("rl", "2000")
    tables = client.list_artifacts(found.info.run_id, "episodes/eval")
    assert len(tables) == 20
    local = client.download_artifacts(found.info.run_id, tables[0].path, str(tmp_path))
    assert json.loads(Path(local).read_text())["data"][0][-1] == "4 | four\nor 5"


def _die_at_the_third_row(run: Run, settings: MlflowSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, real = iter(range(1, 1000)), MlflowTracker.log

    def log(self: MlflowTracker, batch: Batch) -> None:
        real(self, batch)
        if next(calls) == 3:
            kill_self()

    with monkeypatch.context() as patch:
        patch.setattr(MlflowTracker, "log", log)
        killed_at(lambda: follow(settings, [run.path], once=True))
