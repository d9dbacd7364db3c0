from __future__ import annotations

import os
from pathlib import Path

import pytest

from operant.run.layout import MEDIA_FOLDER
from operant.run.run import Run
from operant.spec.settings.trackers import TensorBoardSpec
from operant.trackers import reader
from operant.trackers.follow import Follower
from operant.trackers.position import PositionFile
from operant.trackers.process import follow
from operant.trackers.tensorboard import TensorBoardTracker
from tests.unit.trackers.conftest import MakeRun, curves, kill_self, killed_at, write
from tests.unit.trackers.event_files import accumulated, as_float32, raw_values, scalars

pytest.importorskip("tensorboard")


def track(run: Run, **settings) -> int:
    return follow(TensorBoardSpec(**settings), [run.path], once=True)


def test_the_log_has_the_numbers_of_the_rows(make_run: MakeRun) -> None:
    run = make_run()
    write(run, 2000)
    assert track(run) == 0
    assert scalars(run) == as_float32(curves(run))


def test_what_was_sent_does_not_come_twice(make_run: MakeRun) -> None:
    run = make_run()
    for last in (500, 500, 900, 2000, 2000):
        write(run, last) if run.state != "done" else None
        assert track(run) == 0
    assert scalars(run) == as_float32(curves(run))


def test_a_resume_takes_back_what_came_after_the_checkpoint(make_run: MakeRun) -> None:
    run = make_run()
    write(run, 800)
    before = PositionFile(run.path, "tensorboard")
    track(run)
    assert before.read().step == 800
    # From the checkpoint at 600 on the numbers are others, as after a warm resume.
    for folder in run.checkpoints.glob("*00800"):
        os.replace(folder, folder.with_name("gone"))
    write(run, 2000, scale=3.0)
    track(run)
    assert scalars(run) == as_float32(curves(run))
    assert dict(scalars(run)["train/return"])[700] == pytest.approx(300)


def test_episodes_are_tables_and_videos_move(make_run: MakeRun) -> None:
    from PIL import Image

    run = make_run()
    write(run, 300)
    video = run.path / MEDIA_FOLDER / "frame_300_seed_0_episodes_1.gif"
    video.parent.mkdir()
    frames = [Image.new("RGB", (8, 6), color) for color in ("red", "blue")]
    frames[0].save(video, save_all=True, append_images=frames[1:])
    os.utime(video, (0, 0))
    track(run, episodes="all")
    found = accumulated(run)
    [table, *_] = found.Tensors("episodes/train")
    text = table.tensor_proto.string_val[0].decode()
    assert "| 2+2? | 4 \\| four<br>or 5 |" in text
    assert len(found.Tensors("episodes/eval")) == 3
    [shown] = found.Images(f"media/{video.stem}")
    assert (shown.step, shown.encoded_image_string) == (300, video.read_bytes())


def test_training_episodes_are_left_out_unless_asked_for(make_run: MakeRun) -> None:
    run = make_run()
    write(run, 300)
    track(run)
    assert accumulated(run).Tags()["tensors"] == ["episodes/eval"]


POINTS = {
    "before the first row is written": (TensorBoardTracker, "log", 1),
    "within the rows": (TensorBoardTracker, "log", 4),
    "within the numbers of a row": (TensorBoardTracker, "_add", 9),
    "before the flush": (TensorBoardTracker, "flush", 1),
    "before the rows are noted": (PositionFile, "write", 2),
    "between the flush and the position": (PositionFile, "write", 3),
    "at the close": (TensorBoardTracker, "close", 1),
}
OFTEN = ("within the numbers of a row", "between the flush and the position", "at the close")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    "point", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in POINTS]
)
def test_a_killed_process_leaves_no_gap_and_no_double(
    point: str, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    for last in (700, 1300, 2000):
        write(run, last)
        place, name, count = POINTS[point]
        calls, real = iter(range(1, 1000)), getattr(place, name)

        def call(*args, real=real, calls=calls, count=count, **kwargs):
            # What a library has in a buffer may reach the disk before the kill, and may not.
            return kill_self() if next(calls) == count else real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(place, name, call)
            killed_at(lambda: track(run))
    assert track(run) == 0
    assert scalars(run) == as_float32(curves(run))
    written = raw_values(run)
    assert len(written) == len(set(written))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_rows_that_were_sent_without_a_note_of_it_are_taken_back_by_a_resume(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    write(run, 500)
    track(run)
    write(run, 800)
    real = TensorBoardTracker.flush

    def flush(tracker: TensorBoardTracker) -> bool:
        real(tracker)
        kill_self()
        return True

    with monkeypatch.context() as patch:
        patch.setattr(TensorBoardTracker, "flush", flush)
        killed_at(lambda: track(run))
    assert PositionFile(run.path, "tensorboard").read().step == 500
    for folder in run.checkpoints.glob("*00800"):
        os.replace(folder, folder.with_name("gone"))
    write(run, 2000, scale=3.0)
    track(run)
    assert scalars(run) == as_float32(curves(run))


def test_a_torn_event_is_sent_again(make_run: MakeRun) -> None:
    run = make_run()
    write(run, 500)
    track(run)
    [file] = (run.path / "track" / "tensorboard").iterdir()
    os.truncate(file, file.stat().st_size - 5)
    PositionFile(run.path, "tensorboard").path.unlink()
    write(run, 900)
    track(run)
    assert scalars(run) == as_float32(curves(run))


def test_a_video_that_is_being_written_waits(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    write(run, 300)
    video = run.path / MEDIA_FOLDER / "frame_300.gif"
    video.parent.mkdir()
    video.write_bytes(b"GIF89a")
    follower = Follower(TensorBoardSpec(), run.path)
    follower.look(last=True)
    assert not follower.complete
    monkeypatch.setattr(reader, "WRITTEN_SECONDS", -1.0)
    video.unlink()
    follower.look(last=True)
    assert follower.complete


def test_one_folder_may_hold_all_runs(make_run: MakeRun, tmp_path: Path) -> None:
    for run in (make_run(0), make_run(1)):
        write(run, 300)
        track(run, dir=str(tmp_path / "tb"))
    folders = {path.parent.relative_to(tmp_path / "tb") for path in (tmp_path / "tb").rglob("*tfevents*")}
    assert folders == {Path(f"ppo/20260101-000000/trial_000/session_{k}") for k in (0, 1)}
