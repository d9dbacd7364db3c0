from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from operant.run.run import Run
from operant.spec.settings.trackers import TrackioSpec
from operant.trackers.start import start_tracker
from tests.unit.trackers.conftest import MakeRun, curves, write

pytest.importorskip("trackio")
READ = """
import json, sys
from trackio.sqlite_storage import SQLiteStorage
print(json.dumps(SQLiteStorage.get_logs("operant", sys.argv[1]), default=str))
"""


def logs(run: Run, folder: Path) -> list[dict]:
    import json

    name = "/".join(run.path.parts[-4:])
    environment = {**os.environ, "TRACKIO_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", READ, name], env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_database_has_the_numbers_of_the_rows_through_a_resume(make_run: MakeRun, tmp_path: Path) -> None:
    run, folder = make_run(), tmp_path / "trackio"
    for last, scale in ((800, 1.0), (2000, 3.0)):
        write(run, last, scale)
        process = start_tracker(TrackioSpec(dir=str(folder)), [run.path], once=True)
        process.communicate()
        assert process.returncode == 0, (run.path / "track" / "trackio.log").read_text()
        for checkpoint in run.checkpoints.glob("*00800"):
            os.replace(checkpoint, checkpoint.with_name("gone"))
    found: dict[str, list[tuple[int, float]]] = {}
    for row in logs(run, folder):
        for key, value in row.items():
            if key not in ("step", "timestamp") and not key.startswith("episodes/"):
                found.setdefault(key, []).append((row["step"], value))
    assert {key: sorted(points) for key, points in found.items()} == curves(run)
