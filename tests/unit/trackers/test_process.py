"""The tracker's process beside a session: its end, its death, its silence, and what the run has of it (nothing)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import operant
from operant.api.tracking import track, trackers_for
from operant.errors import SpecError, UsageError
from operant.run.layout import EPISODES_FILE, METRICS_FILE
from operant.run.run import Run
from operant.spec.settings.trackers import TensorBoardSpec
from operant.trackers import follow as follow_module
from operant.trackers import start
from operant.trackers.follow import Follower
from operant.trackers.position import PositionFile, read_positions
from operant.trackers.process import follow
from operant.trackers.start import TrackerProcesses, start_tracker
from tests.processes import wait_until
from tests.unit.trackers.conftest import MakeRun, curves, write, write_row
from tests.unit.trackers.event_files import as_float32, raw_values, scalars

ROOT = Path(__file__).parents[3]
BAD = """
import os, signal, time
from operant.trackers.tracker import Held, Tracker


class Raises(Tracker):
    def open(self, step, rewound):
        return Held()

    def log(self, batch):
        raise ConnectionError("no route to host\\nand more")


class Hangs(Raises):
    def log(self, batch):
        time.sleep(1000)


class Dies(Raises):
    def log(self, batch):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with own trackers: bad ones, and that of the documentation."""
    (tmp_path / "bad_trackers.py").write_text(BAD)
    (tmp_path / "my_tracker.py").write_text((ROOT / "docs" / "examples" / "my_tracker.py").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("bad_trackers", "my_tracker"):
        sys.modules.pop(name, None)


def csv_curves(file: Path) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for line in file.read_text().splitlines():
        frames, key, value = line.split(",")
        found.setdefault(key, []).append((int(frames), float(value)))
    return found


def test_the_documented_tracker_follows_a_run_that_is_killed_and_resumed(here: Path, make_run: MakeRun) -> None:
    run = make_run()
    [settings] = trackers_for(run, "my_tracker:CsvTracker", ["my_tracker:CsvTracker.dir=out"])
    process = start_tracker(settings, [run.path])
    with run.session() as session:
        for frames in range(100, 900, 100):
            write_row(session, frames)
        # The attempt ends here without a checkpoint at 800.
        assert wait_until(lambda: "800,train/return" in _text(here))
        process.kill()
        process.communicate()
    write(run, 2000, scale=3.0)
    again = start_tracker(settings, [run.path])
    again.communicate()
    assert again.returncode == 0
    [file] = here.glob("out/*.csv")
    assert csv_curves(file) == curves(run)


def _text(folder: Path) -> str:
    return "".join(file.read_text() for file in folder.glob("out/*.csv"))


def test_a_process_ends_after_its_launcher_and_the_last_session(make_run: MakeRun) -> None:
    run = make_run()
    settings = TensorBoardSpec()
    with run.session(300) as session:
        process = start_tracker(settings, [run.path])
        assert process.stdin is not None
        write_row(session, 100)
        process.stdin.close()
        assert wait_until(lambda: read_positions(run.path).get("tensorboard") is not None)
        assert process.poll() is None
        write_row(session, 200)
    assert process.wait(20) == 0
    assert read_positions(run.path)["tensorboard"].step == 200


@pytest.mark.parametrize(("kind", "line"), [("Raises", "ConnectionError: no route to host"), ("Hangs", "no answer")])
def test_a_failure_is_one_line(kind: str, line: str, here: Path, make_run: MakeRun) -> None:
    run = make_run()
    write(run, 300)
    name = f"bad_trackers:{kind}"
    [found] = track(run.path, to={name: {"timeout": 0.5}})
    assert found.error is not None
    assert found.error.startswith(f"{name}: {line}")
    assert "\n" not in found.error
    assert line in (run.path / "track" / f"bad_trackers.{kind}.log").read_text()


def test_a_transient_failure_is_tried_again(here: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    from operant.trackers.tensorboard import TensorBoardTracker

    run = make_run()
    write(run, 300)
    monkeypatch.setattr(follow_module, "FIRST_WAIT_SECONDS", 0.0)
    follower = Follower(TensorBoardSpec(), run.path)
    with monkeypatch.context() as broken:
        broken.setattr(TensorBoardTracker, "log", lambda *_: 1 / 0)
        follower.look(last=False)
    assert "ZeroDivisionError" in str(read_positions(run.path)["tensorboard"].error)
    follower.look(last=True)
    at = read_positions(run.path)["tensorboard"]
    assert (at.error, at.state, at.step) == (None, "complete", 300)


def test_two_processes_do_not_track_one_session_at_once(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_module, "LOCK_SECONDS", 0.2)
    run = make_run()
    write(run, 300)
    first = Follower(TensorBoardSpec(), run.path)
    first.look(last=False)
    assert follow(TensorBoardSpec(), [run.path], once=True) == 1
    assert "another process" in str(read_positions(run.path)["tensorboard"].error)


def test_a_process_comes_after_the_one_that_a_rung_before_started(make_run: MakeRun) -> None:
    pytest.importorskip("tensorboard")
    run = make_run()
    write(run, 300)
    first, second = (Follower(TensorBoardSpec(), run.path, patient=True) for _ in range(2))
    first.look(last=False)
    write(run, 500)
    second.look(last=True)
    assert (second.complete, second.gave_up, read_positions(run.path)["tensorboard"].error) == (False, False, None)
    first.look(last=True)
    second.look(last=True)
    assert (first.complete, second.complete) == (True, True)
    assert scalars(run) == as_float32(curves(run))
    written = raw_values(run)
    assert len(written) == len(set(written))


def test_a_process_that_dies_is_started_again(here: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "RESTART_SECONDS", 0.0)
    run = make_run()
    settings = TensorBoardSpec()
    with run.session(300) as session:
        processes = TrackerProcesses([run], [settings])
        first = processes._running[0].process
        first.kill()
        first.wait()
        assert wait_until(lambda: processes.advance() is None and processes._running[0].process is not first)
        write_row(session, 100)
    assert processes.finish(20) == []
    assert read_positions(run.path)["tensorboard"].step == 100


def test_one_that_was_killed_just_before_the_end_is_made_good(make_run: MakeRun) -> None:
    run = make_run()
    with run.session(300) as session:
        processes = TrackerProcesses([run], [TensorBoardSpec()])
        write_row(session, 100)
        killed = processes._running[0].process
        killed.kill()
        killed.wait()
    assert processes.finish(20) == []
    assert read_positions(run.path)["tensorboard"].step == 100


@pytest.mark.slow
def test_trackers_change_no_byte_of_a_run(here: Path) -> None:
    meta = {"max_session": 1, "log_frequency": 200, "save_frequency": 400, "eval_episodes": 2, "final_episodes": 2}
    spec = {
        "name": "small",
        "env": {"name": "CartPole-v1", "max_frame": 1000},
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 32, "minibatch_size": 32}},
    }
    bad = {f"bad_trackers:{kind}": {"timeout": 2.0} for kind in ("Raises", "Hangs", "Dies")}
    begun = time.monotonic()
    plain = operant.train({**spec, "meta": meta}, progress=False, out=here / "plain")
    alone = time.monotonic() - begun
    handle = operant.start({**spec, "meta": {**meta, "track": bad}}, out=here / "tracked")
    tracked = handle.wait()
    assert time.monotonic() - begun - alone < alone + 15
    first, second = (trial.sessions[0].path for trial in (plain, tracked))
    for file in (METRICS_FILE, EPISODES_FILE):
        assert _timeless(first / file) == _timeless(second / file)
    names = {path.relative_to(first) for path in first.rglob("*")}
    others = {path.relative_to(second) for path in second.rglob("*") if "track" not in path.relative_to(second).parts}
    assert names == others
    for weights in first.glob("checkpoints/0*/*.safetensors"):
        assert weights.read_bytes() == (second / weights.relative_to(first)).read_bytes()
    assert any("Raises: ConnectionError: no route to host" in line for line in handle.tracker_news())
    # An own tracker that can no longer be imported does not keep the run from being opened.
    (here / "bad_trackers.py").unlink()
    assert operant.Session(second).spec.meta.track == ()


def _timeless(file: Path) -> list[dict]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    timed = ("seconds", "perf/frames_per_second", "took")
    return [{key: value for key, value in row.items() if key not in timed} for row in rows]


def test_settings_of_the_command_line_are_checked_as_those_of_a_spec(make_run: MakeRun) -> None:
    run = make_run()
    [settings] = trackers_for(run, ["wandb"], ["wandb.mode=offline"])
    assert settings.model_dump()["mode"] == "offline"
    with pytest.raises(SpecError, match=r"did you mean project\?"):
        trackers_for(run, ["wandb"], ["wandb.projct=x"])
    with pytest.raises(UsageError, match="no tracker that is asked for"):
        trackers_for(run, ["wandb"], ["tensorboard.dir=x"])
    with pytest.raises(UsageError, match=r"no meta\.track"):
        trackers_for(run, None)


def test_an_absent_package_is_one_line_with_the_command(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_is_installed", lambda module: False)
    run = make_run()
    with pytest.raises(UsageError, match="the tracker wandb needs the package wandb") as told:
        track(run.path, to="wandb")
    assert "wandb" in str(told.value.remedy)
    with pytest.raises(UsageError, match="the tracker mlflow needs the package mlflow"):
        operant.train("ppo_cartpole", root=run.path / "none", meta={"track": ["mlflow"]})
    assert not (run.path / "none").exists()


def test_the_position_file_survives_nonsense(make_run: MakeRun) -> None:
    run: Run = make_run()
    file = PositionFile(run.path, "tensorboard")
    file.path.parent.mkdir()
    for text in ("", "[]", "{}", '{"tracker": "tensorboard"}', '{"tracker": "tensorboard", "marks": 3, "videos": []}'):
        file.path.write_text(text)
        assert file.read().step == -1
