from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from toy_trainer import make_run, train

from operant.errors import RunError, StoppedError
from operant.run import provenance
from operant.run.checkpoint import list_checkpoints
from operant.run.episode import Episode
from operant.run.metrics import read_rows
from operant.run.progress import Progress, without_timing
from operant.run.run import Run
from operant.run.session import Session
from operant.run.stop import StopRequest

TOY = Path(__file__).parent / "toy_trainer.py"


@pytest.fixture(autouse=True)
def quick_provenance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provenance has tests of its own; here it need not ask git each time."""
    monkeypatch.setattr(provenance, "installed_packages", dict)
    monkeypatch.setattr(provenance, "_run", lambda command, seconds: None)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / "s")


def nothing(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"w")


def rows(run: Run, file: str = "metrics.jsonl") -> list[dict]:
    return [without_timing(row) for row in read_rows(run.path / file)]


def events(run: Run, kind: str) -> list[str]:
    return [row["message"] for row in read_rows(run.path / "events.jsonl") if row["kind"] == kind]


def due_frames(session: Session, kind, frames: range) -> list[int]:
    return [at for at in frames if session.due(kind, Progress(frames=at))]


def test_the_whole_budget_ends_in_done(run: Run):
    train(run)
    assert (run.state, run.error, run.attempts) == ("done", None, 1)
    assert rows(run)[-1]["final/score"] is not None


def test_a_goal_before_the_budget_ends_in_stopped(run: Run):
    train(run, until=30)
    assert run.state == "stopped"
    assert list_checkpoints(run.checkpoints)[-1].at.frames == 30


def test_the_state_is_running_inside(run: Run):
    with run.session() as session:
        assert run.state == "running"
        assert session.run.state == "running"
    assert run.state == "stopped"


def test_a_failure_is_recorded_and_passed_on(run: Run):
    with pytest.raises(ZeroDivisionError), run.session() as session:
        log_and_fail(session, ZeroDivisionError("by nought"))
    assert (run.state, run.error) == ("failed", "ZeroDivisionError: by nought")
    assert rows(run)[-1]["walk"] == 1
    log = (run.path / "logs" / "attempt_001.log").read_text()
    assert "Traceback" in log
    assert "test_session.py" in log
    train(run)
    assert (run.state, run.error, run.attempts) == ("done", None, 2)


def log_and_fail(session: Session, failure: Exception) -> None:
    session.log(Progress(frames=5), {"walk": 1})
    session.event("note", f"here comes {failure}")
    raise failure


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), StoppedError("asked to stop")])
def test_an_interruption_is_no_failure(run: Run, reason: BaseException):
    with pytest.raises(type(reason)), run.session():
        raise reason
    assert (run.state, run.error) == ("stopped", None)


def test_resumed_in_pieces_equals_run_in_one_go(tmp_path: Path):
    whole, pieces = make_run(tmp_path / "whole"), make_run(tmp_path / "pieces")
    train(whole)
    for until in (7, 8, 25, 40, 59, None):
        train(pieces, until=until)
    assert pieces.attempts == 6
    assert rows(pieces) == rows(whole)
    assert rows(pieces, "episodes.jsonl") == rows(whole, "episodes.jsonl")
    last = [(list_checkpoints(each.checkpoints)[-1].path / "walk.json").read_bytes() for each in (whole, pieces)]
    assert last[0] == last[1]


def test_rows_past_the_checkpoint_are_cut(run: Run):
    episode = Episode("walk", "train", 1, Progress(frames=3), 1.0, 3, "terminated")
    with run.session() as session:
        session.episode(episode)
        session.log(Progress(frames=3), {"kept": True})
        session.save(Progress(frames=3, seconds=100.0), nothing)
        session.episode(episode)
        session.log(Progress(frames=6), {"kept": False})
    with run.session() as session:
        assert session.latest is not None
        assert session.latest.at.frames == 3
        assert session.seconds() >= 100.0
        assert [row["kept"] for row in rows(run)] == [True]
        assert len(rows(run, "episodes.jsonl")) == 1


def test_cadence_depends_on_frames_alone(run: Run):
    with run.session() as session:
        assert due_frames(session, "log", range(0, 30, 3)) == [6, 12, 15, 21, 27]
        assert due_frames(session, "eval", range(0, 30, 3)) == [15]
        assert due_frames(session, "save", range(0, 30, 3)) == [21]
        session.save(Progress(frames=27), nothing)
    with run.session() as session:
        assert due_frames(session, "log", range(30, 48, 3)) == [30, 36, 42, 45]
        assert due_frames(session, "eval", range(30, 48, 3)) == [30, 45]


def test_everything_is_due_once_at_the_full_budget(tmp_path: Path):
    run = make_run(tmp_path / "odd", max_frame=58, save=1000)
    with run.session() as session:
        for kind in ("log", "eval"):
            assert due_frames(session, kind, range(51, 70, 3))[-1] == 60
        assert due_frames(session, "save", range(51, 61, 3)) == [60]
        assert session.done(Progress(frames=60))
        assert not session.done(Progress(frames=57))
        session.save(Progress(frames=60), nothing)
    with run.session() as session:
        for kind in ("log", "eval", "save"):
            assert not session.due(kind, Progress(frames=60))


def test_a_goal_makes_a_save_due_but_neither_log_nor_evaluation(tmp_path: Path):
    run = make_run(tmp_path / "s", max_frame=1000, save=500)
    with run.session(until=32) as session:
        at = Progress(frames=33)
        assert due_frames(session, "eval", range(0, 33, 3)) == [15, 30]
        assert not session.due("eval", at)
        assert session.due("save", at)
        session.save(at, nothing)
        assert not session.due("save", at)
        assert session.done(at)


def test_a_stop_makes_a_save_due_and_then_ends_the_loop(run: Run):
    with run.session() as session:
        assert not session.due("save", Progress(frames=3))
        os.kill(os.getpid(), signal.SIGINT)
        assert session.stop_requested
        assert not session.done(Progress(frames=3)), "the update just finished is not saved yet: one more, then stop"
        assert session.due("save", Progress(frames=6))
        session.save(Progress(frames=6), nothing)
        assert session.done(Progress(frames=6))
    assert run.state == "stopped"


def test_a_stop_is_obeyed_by_a_loop_that_asks_done_first(run: Run):
    with run.session() as session:
        os.kill(os.getpid(), signal.SIGTERM)
        assert session.done(Progress(frames=3))


def test_ctrl_c_saves_and_the_run_continues_as_if_nothing_happened(tmp_path: Path, start):
    settings = {"max_frame": 900, "save": 600}
    whole, stopped = make_run(tmp_path / "whole", **settings), make_run(tmp_path / "stopped", **settings)
    train(whole)
    child = start(TOY, stopped.path, 0.01)
    wait_for_rows(stopped)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert child.returncode == 0, err
    assert "once more to stop now" in err
    assert stopped.state == "stopped"
    assert 0 < list_checkpoints(stopped.checkpoints)[-1].at.frames < 600
    train(stopped)
    assert rows(stopped) == rows(whole)


def wait_for_rows(run: Run) -> None:
    deadline = time.monotonic() + 20
    while not rows(run):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_processes_never_write_one_run(run: Run, start):
    with run.session():
        child = start(TOY, run.path)
        _, err = child.communicate(timeout=20)
    assert child.returncode == 3
    assert f"is being written by process {os.getpid()}" in err
    assert "Traceback" not in err
    assert run.attempts == 1


def test_a_killed_process_leaves_a_stopped_run_that_resumes(tmp_path: Path, start):
    whole, killed = make_run(tmp_path / "whole", max_frame=300), make_run(tmp_path / "killed", max_frame=300)
    train(whole)
    child = start(TOY, killed.path, 0.01)
    wait_for_rows(killed)
    assert killed.state == "running"
    child.kill()
    child.wait()
    assert killed.state == "stopped"
    train(killed)
    assert killed.state == "done"
    assert rows(killed) == rows(whole)


def test_a_corrupt_checkpoint_is_told_set_aside_and_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    whole, broken = make_run(tmp_path / "whole"), make_run(tmp_path / "broken")
    train(whole)
    train(broken, until=50)
    frames = [found.at.frames for found in list_checkpoints(broken.checkpoints)]
    newest = broken.checkpoints / f"{frames[-1]:012d}"
    (newest / "walk.json").write_bytes(b"{}")
    capsys.readouterr()
    train(broken)
    (message,) = events(broken, "corrupt_checkpoint")
    assert f"{newest.name}/walk.json" in message
    assert f"{newest.name}.corrupt" in message
    assert message in capsys.readouterr().err
    assert (broken.checkpoints / f"{newest.name}.corrupt" / "walk.json").exists()
    assert f"{frames[-2]:012d}" in events(broken, "resume")[-1]
    assert rows(broken) == rows(whole)


def test_without_any_good_checkpoint_it_says_so_and_keeps_the_rows(tmp_path: Path):
    whole, broken = make_run(tmp_path / "whole"), make_run(tmp_path / "broken")
    train(whole)
    train(broken, until=50)
    before = {name: (broken.path / name).read_bytes() for name in ("metrics.jsonl", "episodes.jsonl")}
    for manifest in broken.checkpoints.glob("*/manifest.json"):
        os.truncate(manifest, 10)
    train(broken)
    assert events(broken, "restart")
    assert len(events(broken, "dropped_rows")) == 2
    for name, content in before.items():
        assert (broken.path / "logs" / f"dropped_attempt_002_{name}").read_bytes() == content
    assert rows(broken) == rows(whole)
    assert broken.state == "done"


def test_a_log_shorter_than_the_checkpoint_says_is_told(run: Run):
    train(run, until=30)
    os.truncate(run.path / "metrics.jsonl", 50)
    with run.session():
        pass
    (message,) = events(run, "lost_rows")
    assert "metrics.jsonl lacks" in message
    assert (run.path / "metrics.jsonl").stat().st_size == 0


def test_anchors_are_kept_across_attempts(run: Run):
    with run.session() as session:
        session.anchor("random", 22.9)
    with run.session() as session:
        assert session.anchors == {"random": 22.9}
        session.anchor("human", 500)
    assert json.loads((run.path / "anchors.json").read_text()) == {"random": 22.9, "human": 500.0}


def test_damaged_anchors_are_told(run: Run):
    (run.path / "anchors.json").write_text("{")
    with run.session() as session:
        assert session.anchors == {}
    assert events(run, "damaged")


def test_a_number_that_is_not_finite_is_told_once(run: Run):
    with run.session() as session:
        for frames in (5, 10):
            session.log(Progress(frames=frames), {"loss/policy": float("nan"), "loss/value": 1.0})
    assert [row["loss/policy"] for row in rows(run)] == [None, None]
    assert events(run, "not_finite") == ["loss/policy is not a finite number at frame 5; written as null"]


def test_rows_are_visible_at_once_with_the_episodes_before_them(run: Run):
    with run.session() as session:
        session.episode(Episode("walk", "train", 1, Progress(frames=3), 1.0, 3, "terminated"))
        assert rows(run, "episodes.jsonl") == []
        session.log(Progress(frames=5), {"walk": 1.0})
        assert len(rows(run)) == len(rows(run, "episodes.jsonl")) == 1


def test_a_run_moved_away_is_not_written_into(run: Run, tmp_path: Path):
    with pytest.raises(RunError, match="no longer ours"):
        save_and_move(run, tmp_path / "moved")
    assert [found.at.frames for found in list_checkpoints(tmp_path / "moved" / "checkpoints")] == [3]
    assert not run.path.exists()


def save_and_move(run: Run, target: Path) -> None:
    with run.session() as session:
        session.save(Progress(frames=3), nothing)
        shutil.move(run.path, target)
        session.save(Progress(frames=6), nothing)


def test_a_run_taken_over_by_another_host_is_left_alone(run: Run):
    with pytest.raises(RunError, match="no longer ours"), run.session():
        (run.path / "lock").write_text('{"pid": 1, "host": "far-away"}')
    assert run.document["state"] == "running", "what the new holder wrote is not overwritten"


def test_a_changed_working_directory_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run = make_run(Path("s"))
    (tmp_path / "elsewhere").mkdir()
    with run.session() as session:
        os.chdir(tmp_path / "elsewhere")
        session.log(Progress(frames=3), {})
        session.save(Progress(frames=3), nothing)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    os.chdir(tmp_path)
    assert run.state == "stopped"


def test_a_secret_reaches_no_file_of_the_run(run: Run, monkeypatch: pytest.MonkeyPatch):
    token = "hf_thisIsASecret0123456789"
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(ValueError, match=token), run.session() as session:
        log_and_fail(session, ValueError(f"bad token {token}"))
    files = [file for file in run.path.rglob("*") if file.is_file()]
    assert len(files) >= 7
    assert not [file for file in files if token.encode() in file.read_bytes()]
    assert run.error == "ValueError: bad token <redacted>"


def test_events_are_the_history_of_all_attempts(run: Run, capsys: pytest.CaptureFixture[str]):
    for _ in range(2):
        with run.session() as session:
            session.event("note", "a word")
    found = [row for row in read_rows(run.path / "events.jsonl") if row["kind"] == "note"]
    assert [row["attempt"] for row in found] == [1, 2]
    assert capsys.readouterr().err.count("note: a word") == 2
    assert "note: a word" in (run.path / "logs" / "attempt_002.log").read_text()


def test_a_failed_start_frees_the_lock_and_the_signals(run: Run, monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr("operant.run.session.recover", fail)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError, match="no luck"), run.session():
        pytest.fail("must not start")
    assert signal.getsignal(signal.SIGINT) == before
    assert (run.state, run.error) == ("failed", "RuntimeError: no luck")
    monkeypatch.undo()
    train(run)
    assert run.state == "done"


def test_an_unrecordable_provenance_does_not_stop_training(run: Run, monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr("operant.run.session.capture", fail)
    train(run)
    assert run.state == "done"
    assert "not yours" in events(run, "provenance")[0]


def test_a_save_is_due_when_the_clock_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    spec = {**make_run(tmp_path / "plain", save=10**6).spec}
    spec["meta"] = {**spec["meta"], "save_minutes": 2}
    run = Run.create(tmp_path / "timed", name="toy", spec=spec, seed=7, session=0, threads=1)
    now = [0.0]
    monkeypatch.setattr("operant.run.session.time.perf_counter", lambda: now[0])
    with run.session() as session:
        assert not session.due("save", Progress(3))
        now[0] = 121.0
        assert session.due("save", Progress(6))
        session.save(Progress(6), nothing)
        assert not session.due("save", Progress(9))
        now[0] = 200.0
        assert not session.due("save", Progress(12))
        now[0] = 242.0
        assert session.due("save", Progress(15))


def test_sessions_of_one_process_share_a_request_to_stop(tmp_path: Path):
    runs = [make_run(tmp_path / name) for name in "ab"]
    with StopRequest() as stop, runs[0].session(stop=stop) as one, runs[1].session(stop=stop) as other:
        os.kill(os.getpid(), signal.SIGINT)
        assert one.stop_requested
        assert other.stop_requested
    assert [run.state for run in runs] == ["stopped", "stopped"]
