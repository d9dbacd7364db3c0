from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from operant.run.run import Run
from operant.spec.settings.trackers import WandbSpec
from operant.trackers.position import PositionFile
from operant.trackers.start import start_tracker
from operant.trackers.tracker import Batch
from operant.trackers.wandb import WandbTracker
from tests.processes import wait_until
from tests.unit.trackers.conftest import MakeRun, curves, write, write_row

wandb = pytest.importorskip("wandb")
OFFLINE = WandbSpec(mode="offline", tags=("a", "b"))


def history(run: Run) -> list[dict[str, Any]]:
    """Every history record of the one offline run, by W&B's own reader."""
    from wandb.proto.wandb_internal_pb2 import Record  # pyright: ignore[reportAttributeAccessIssue]
    from wandb.sdk.internal.datastore import DataStore

    [file] = (run.path / "track" / "wandb").glob("offline-run-*/run-*.wandb")
    store, rows = DataStore(), []
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        record = Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            rows.append({".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items})
    store.close()
    return rows


def tracked_curves(run: Run) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for row in history(run):
        for key, value in row.items():
            if not key.startswith(("_", "episodes/", "media/")):
                found.setdefault(key, []).append((row["_step"], value))
    return found


def run_once(run: Run) -> None:
    process = start_tracker(OFFLINE, [run.path], once=True)
    process.communicate()
    assert process.returncode == 0, (run.path / "track" / "wandb.log").read_text()


def test_an_offline_run_has_the_numbers_of_the_rows_and_the_tables(make_run: MakeRun) -> None:
    run = make_run()
    write(run, 2000)
    run_once(run)
    assert tracked_curves(run) == curves(run)
    files = list((run.path / "track" / "wandb").glob("offline-*/files/media/table/episodes/eval_*.json"))
    assert len(files) == 20
    content = json.loads(files[0].read_text())
    assert content["columns"][-2:] == ["prompt", "completion"]
    assert content["data"][0][-1] == "4 | four\nor 5"


def _kill_when(process: subprocess.Popen[bytes], seen: Any) -> None:
    assert wait_until(seen, 60)
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_killed_and_rewound_processes_leave_one_run_without_gap_or_double(make_run: MakeRun) -> None:
    run = make_run()
    folder = run.path / "track" / "wandb"
    with run.session(800) as session:
        process = start_tracker(OFFLINE, [run.path])
        for frames in range(100, 900, 100):
            write_row(session, frames)
        _kill_when(process, lambda: bool(list(folder.glob("offline-run-*/run-*.wandb"))))
    run_once(run)
    assert [row["_step"] for row in history(run)] == list(range(100, 900, 100))
    for checkpoint in run.checkpoints.glob("*00800"):
        os.replace(checkpoint, checkpoint.with_name("gone"))
    write(run, 2000, scale=3.0)
    run_once(run)
    assert tracked_curves(run) == curves(run)
    position = PositionFile(run.path, "wandb").read()
    assert (position.state, position.step) == ("complete", 2000)
    assert Path(position.place).is_dir()


class Server:
    """What a run of W&B online does to its arguments: it holds steps, and rewinds or refuses to."""

    def __init__(self, can_rewind: bool = True) -> None:
        self.steps: dict[str, list[int]] = {}
        self.can_rewind = can_rewind

    def init(self, *, id: str, resume_from: str | None = None, **_: Any) -> Any:
        steps = self.steps.setdefault(id, [])
        if resume_from is not None:
            if not self.can_rewind:
                raise wandb.Error("rewind is not enabled")
            last = int(resume_from.partition("?_step=")[2])
            steps[:] = [step for step in steps if step <= last]

        def log(values: dict[str, Any], step: int) -> None:
            assert not steps or step >= steps[-1], "W&B drops a step that goes back"
            steps.append(step)

        start = steps[-1] + 1 if steps else 0
        methods = {"log": log, "define_metric": lambda *_, **__: None, "finish": lambda **_: None}
        return SimpleNamespace(starting_step=start, url="https://wandb", dir="", **methods)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()
    monkeypatch.setattr(wandb, "init", server.init)
    return server


def opened(run: Run, step: int, rewound: bool) -> tuple[WandbTracker, Any]:
    tracker = WandbTracker(WandbSpec(mode="online"), run)
    return tracker, tracker.open(step, rewound)


def test_online_the_server_says_what_it_holds(make_run: MakeRun, server: Server) -> None:
    run = make_run()
    tracker, held = opened(run, -1, False)
    assert held.anew
    for step in (100, 200):
        tracker.log(Batch(step, {"x": 1.0}))
    # Killed before any position was noted.
    _, held = opened(run, -1, False)
    assert not held.missing(Batch(200, {"x": 1.0}))
    assert held.missing(Batch(300, {"x": 1.0}))


def test_online_a_rewind_takes_back_steps(make_run: MakeRun, server: Server) -> None:
    run = make_run()
    tracker, _ = opened(run, -1, False)
    for step in (100, 200, 300):
        tracker.log(Batch(step, {"x": 1.0}))
    again, held = opened(run, 100, True)
    assert held.missing(Batch(200, {"x": 2.0}))
    again.log(Batch(200, {"x": 2.0}))
    assert server.steps[again.run_id] == [100, 200]


def test_online_a_server_that_cannot_rewind_gets_a_new_run(make_run: MakeRun, server: Server) -> None:
    run = make_run()
    server.can_rewind = False
    tracker, _ = opened(run, -1, False)
    tracker.log(Batch(300, {"x": 1.0}))
    _, held = opened(run, 100, True)
    assert held.anew
    later, _ = opened(run, 300, False)
    later.log(Batch(100, {"x": 1.0}))
    assert server.steps == {tracker.run_id: [300], f"{tracker.run_id}-2": [100]}


def test_online_a_row_after_the_end_of_its_frame_keeps_its_frame_as_a_number(make_run: MakeRun, server: Server) -> None:
    run = make_run()
    tracker, _ = opened(run, -1, False)
    tracker.log(Batch(2000, {"x": 1.0}))
    later, held = opened(run, 2000, False)
    final = held.missing(Batch(2000, {"final/score": 1.0}))
    later.log(final)
    assert server.steps[tracker.run_id] == [2000, 2001]
