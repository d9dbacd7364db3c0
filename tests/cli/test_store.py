"""`operant push`, `pull`, `ls`, and `meta.sync` on real processes, with a store in a folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operant.run.records import Records, difference
from operant.run.run import find_sessions
from tests.processes import marked, wait_until

if TYPE_CHECKING:
    from tests.cli.conftest import Operant, Toy


def test_there_and_back(operant: Operant, toy: Toy) -> None:
    assert operant("train", "toy.yaml", "--plain").code == 0
    pushed = operant("push", "toy", "store")
    assert pushed.code == 0
    assert "sent, 0 there already" in pushed.out
    listed = operant("ls", "store")
    assert "done" in listed.out
    assert "2/2" in listed.out
    (row,) = operant("ls", "store", "--json").document["runs"]
    assert (row["state"], row["frames"], row["score"]["point"]) == ("done", 100, 100.0)
    pulled = operant("pull", "store", "--root", "other")
    assert "fetched and verified: other/toy/" in pulled.out
    assert operant("show", "toy", "--root", "other").code == 0
    assert "is up to date" in operant("pull", "store", "--root", "other").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ls", "gopher://x"), "this is no address of a store"),
        (("pull", "s3://me:hush@bucket/x"), "an address must not hold credentials"),
        (("pull", "nothing-here"), "no run is stored there"),
        (("train", "toy.yaml", "--resume"), "--resume looks for the run at meta.sync, which is not set"),
        (("train", "toy.yaml", "-s", "meta.sync=ftp://x"), "this is no address of a store"),
    ],
)
def test_mistakes_are_said_before_any_work(operant: Operant, toy: Toy, words: tuple[str, ...], said: str) -> None:
    result = operant(*words)
    assert result.code in (2, 3)
    assert said in result.err
    assert "hush" not in result.err
    assert "Traceback" not in result.err
    assert words[0] != "train" or toy.sessions() == []


def test_a_run_is_stored_while_it_trains(operant: Operant, toy: Toy) -> None:
    result = operant("train", "toy.yaml", "--plain", "-s", "meta.sync=store")
    assert result.code == 0
    assert "stored at store" in result.err
    assert "stored at store" in operant("show", "toy").out
    assert operant("show", "toy", "--json").document["sync"]["state"] == "done"
    operant("pull", "store", "--root", "other")
    mine, theirs = toy.sessions(), find_sessions(next((toy.folder / "other" / "toy").iterdir()))
    assert [difference(Records.of(a), Records.of(b)) for a, b in zip(mine, theirs, strict=True)] == [None, None]
    # The figure is drawn after training, and before the last upload.
    assert list((toy.folder / "other").glob("toy/*/report/*.png"))


@pytest.mark.slow
def test_a_run_whose_first_push_was_cut_off_is_not_resumed(operant: Operant, toy: Toy) -> None:
    assert operant("train", "toy.yaml", "--plain", "-s", "meta.sync=store").code == 0
    (manifest,) = (toy.folder / "store" / "toy").glob("*/manifest.json")
    manifest.unlink()
    assert operant("ls", str(manifest.parent), "--json").document["runs"] == []
    again = operant("train", "toy.yaml", "--plain", "--resume", "-s", "meta.sync=store")
    assert again.code == 0
    assert len(list((toy.folder / "runs" / "toy").iterdir())) == 2


@pytest.mark.slow
def test_a_store_that_fails_does_not_touch_the_run(operant: Operant, toy: Toy) -> None:
    blocked = toy.folder / "store"
    blocked.mkdir()
    (blocked / "toy").write_text("a file in the way")
    result = operant("train", "toy.yaml", "--plain", "-s", "meta.sync=store")
    assert result.code == 0
    assert toy.states() == ["done", "done"]
    assert "not everything is at store" in result.err
    assert "operant sync" in operant("show", "toy").out
    (blocked / "toy").unlink()
    assert operant("sync", "toy", "store").code == 0
    assert "done" in operant("ls", "store").out


@pytest.mark.slow
def test_a_lost_machine(operant: Operant, toy: Toy, tmp_path: Path) -> None:
    """Every process is killed and the directory deleted; the run ends elsewhere as one that was never disturbed."""
    toy.write(frames=400, sessions=1)
    assert operant("train", "toy.yaml", "--plain", "--out", "undisturbed").code == 0
    toy.write(frames=400, sessions=1, pause=0.2, pause_from=200)
    spec = (toy.folder / "toy.yaml").read_text().replace("meta:\n", f"meta:\n  sync: {tmp_path / 'store'}\n")
    (toy.folder / "toy.yaml").write_text(spec)
    launcher = subprocess.Popen(
        [sys.executable, "-m", "operant", "train", "toy.yaml", "--plain"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        stored = lambda: [row["frames"] for row in operant("ls", "store", "--json").document["runs"]]  # noqa: E731
        assert wait_until(lambda: any(frames >= 200 for frames in stored()), 60)
    finally:
        launcher.kill()
        for pid in marked(str(tmp_path)):
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
        launcher.wait()
    shutil.rmtree(toy.folder / "runs")
    toy.write(frames=400, sessions=1, pause=0.2, pause_from=200)
    (toy.folder / "toy.yaml").write_text(spec)
    resumed = operant("train", "toy.yaml", "--plain", "--resume", "--root", "elsewhere")
    assert resumed.code == 0
    assert "session_0 continues at frame" in resumed.out
    (there,) = find_sessions(next((toy.folder / "elsewhere" / "toy").iterdir()))
    (here,) = find_sessions(toy.folder / "undisturbed")
    assert difference(Records.of(here), Records.of(there)) is None
    assert operant("ls", "store", "--json").document["runs"][0]["state"] == "done"
