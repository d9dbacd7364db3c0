from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy_trainer import make_run

from operant.errors import RunError
from operant.run.disk import create_folder, write_json, write_text
from operant.run.progress import Progress
from operant.run.run import Run

HELPER = Path(__file__).parent / "full_disk.py"
MOUNT = "mount -t tmpfs -o size=600k tmpfs {folder}"


def can_mount(folder: Path) -> bool:
    """Whether a small disk can be mounted in a namespace of its own, out of sight of everybody else."""
    if shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(["unshare", "-rm", "sh", "-c", MOUNT.format(folder=folder)], capture_output=True).returncode == 0
    )


def on_small_disk(folder: Path, moment: str) -> dict:
    if not can_mount(folder):
        pytest.skip("mounting needs user namespaces")
    script = f"{MOUNT.format(folder=folder)} && exec {sys.executable} {HELPER} {moment} {folder}"
    path = os.pathsep.join((str(HELPER.parents[3]), str(HELPER.parent)))
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("moment", ["log", "save", "save_library"])
def test_a_full_disk_fails_the_run_and_keeps_its_checkpoints(tmp_path: Path, moment: str):
    report = on_small_disk(tmp_path, moment)
    assert report["class"] == "DiskFull"
    assert report["exit"] == 3
    assert "the disk is full (0 bytes free)" in report["cause"]
    assert f"operant resume {tmp_path}/s" in report["remedy"]
    assert report["place"].startswith(f"{tmp_path}/s/")
    assert report["state"] == "failed"
    assert "the disk is full" in report["error"]
    assert report["still_good"]
    assert report["leftovers"] == []
    assert report["state_after"] == "done"


def test_a_disk_that_is_full_at_the_start_is_reported_too(tmp_path: Path):
    report = on_small_disk(tmp_path, "start")
    assert report["class"] == "DiskFull"
    assert f"operant resume {tmp_path}/s" in report["remedy"]
    assert report["still_good"]
    assert report["state_after"] == "done"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_that_cannot_grow_names_the_file(tmp_path: Path):
    run = make_run(tmp_path / "s")
    with pytest.raises(RunError, match="the disk is full") as caught:
        log_to_full_device(run)
    assert caught.value.place == str(tmp_path / "s" / "metrics.jsonl")
    assert run.state == "failed"


def log_to_full_device(run: Run) -> None:
    with run.session() as session:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, session._metrics._file)
        os.close(full)
        session.log(Progress(frames=5), {"walk": 1.0})


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_an_engines_own_full_disk_is_explained(tmp_path: Path, number: int):
    run = make_run(tmp_path / "s")
    with pytest.raises(RunError, match="the disk is full") as caught, run.session():
        raise OSError(number, os.strerror(number), str(tmp_path / "s" / "media" / "a.gif"))
    assert caught.value.place == str(tmp_path / "s" / "media" / "a.gif")
    assert (run.state, run.error) == ("failed", str(caught.value))


def test_other_errors_of_the_system_stay_what_they_are(tmp_path: Path):
    run = make_run(tmp_path / "s")
    with pytest.raises(PermissionError), run.session():
        raise PermissionError(errno.EACCES, "not yours")
    assert Run.open(tmp_path / "s").error == "PermissionError: [Errno 13] not yours"


def test_a_failed_replacement_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "state.json"
    write_json(file, {"a": 1})

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_text(file, "new")
    assert json.loads(file.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    create_folder(tmp_path / "deep" / "a", {"one": "1", "two": "2"})
    assert sorted(entry.name for entry in (tmp_path / "deep" / "a").iterdir()) == ["one", "two"]
    with pytest.raises(FileExistsError):
        create_folder(tmp_path / "deep" / "a", {"one": "other"})
    assert (tmp_path / "deep" / "a" / "one").read_text() == "1"

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="full"):
        create_folder(tmp_path / "deep" / "b", {"one": "1"})
    assert [entry.name for entry in (tmp_path / "deep").iterdir()] == ["a"]
