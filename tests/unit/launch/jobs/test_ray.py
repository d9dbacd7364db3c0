"""Jobs of a Ray cluster on this machine, through its job API: followed, stopped and resumed."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from operant.cli.app import run
from operant.launch.jobs.ray_tasks import run_task
from operant.run.records import Records, difference
from operant.run.run import find_sessions
from tests.processes import wait_until

RAY = Path(sys.executable).with_name("ray")
SPEC = ["ppo_cartpole", "--sessions", "1", "-s", "env.max_frame=40960", "-s", "meta.final_episodes=2"]


def test_a_task_runs_where_the_job_was_launched(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run_task(["sh", "-c", "pwd; echo $OPERANT_CORES; exit 4"], str(tmp_path), str(log), 3) == 4
    assert log.read_text() == f"{tmp_path}\n3\n"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs the package ray")
def test_no_cluster_is_one_clear_line(tmp_path: Path) -> None:
    words = ["launch", *SPEC, "--on", "ray", "-s", "meta.launch.ray.address=http://127.0.0.1:9", "-y"]
    # In a process of its own: Ray reads once whether tokens are wanted.
    told = subprocess.run([sys.executable, "-m", "operant", *words], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode != 0
    assert "no Ray cluster answers at http://127.0.0.1:9" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One node that wants a token; other clusters of the machine stay."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    folder = tmp_path_factory.mktemp("ray")
    ports = [_free_port() for _ in range(3)]
    options = [f"--port={ports[0]}", f"--dashboard-port={ports[1]}", f"--ray-client-server-port={ports[2]}"]
    options += ["--dashboard-agent-listen-port=0", "--num-cpus=2", "--object-store-memory=100000000"]
    command = [str(RAY), "start", "--head", "--block", f"--temp-dir={folder}", "--disable-usage-stats", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as head:
        assert wait_until(lambda: _answers(ports[1]) or head.poll() is not None, 300)
        yield f"http://127.0.0.1:{ports[1]}"
        head.terminate()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("aiohttp_cors") is None, reason="needs ray[default], which the extra cluster brings")
def test_a_job_is_followed_stopped_and_resumed(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"meta.launch.ray.address={cluster}"
    assert run(["launch", *SPEC, "--on", "ray", "-s", address, "-y", "--out", "job"]) == 0
    (session,) = find_sessions(tmp_path / "job")
    assert wait_until(lambda: session.state == "running", 300)
    assert run(["jobs", "stop", "1"]) == 0
    assert run(["jobs", "follow", "1"]) == 0
    assert "job 1 stopped at" in capsys.readouterr().out
    assert run(["jobs", "resume", "1", "-y"]) == 0
    assert run(["jobs", "follow", "2"]) == 0
    assert "job 2 done at 40,960" in capsys.readouterr().out
    assert run(["train", *SPEC, "--out", "whole", "--plain"]) == 0
    pair = (*find_sessions(tmp_path / "job"), *find_sessions(tmp_path / "whole"))
    assert difference(*(Records.of(each) for each in pair)) is None
    assert json.loads((tmp_path / "job" / "launch" / "ray.json").read_text())["folder"] == str(tmp_path)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def _answers(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
