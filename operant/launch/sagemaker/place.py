"""SageMaker as a place that jobs can be sent to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from operant.install import missing_package
from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobState, LaunchError, require_sync
from operant.launch.sagemaker.documents import dockerfile
from operant.launch.sagemaker.request import (
    SYNC_VARIABLE,
    check_request,
    create_training_job,
    hyperparameters,
    job_name,
)
from operant.launch.sagemaker.source import source_tarball

REQUEST_FILE = "sagemaker.json"
_STATES: dict[str, JobState] = {"InProgress": "running", "Stopping": "running"}
_QUEUED = ("Starting", "Pending", "LaunchingMLInstances", "PreparingTrainingStack", "DownloadingTrainingImage")


class SageMakerPlace:
    """The account and region of this machine's AWS settings, or of the spec."""

    def plan(self, request: JobRequest) -> JobPlan:
        """The request, held against AWS's own description of it, and the Dockerfile of its image."""
        _require_boto3()
        sync = require_sync(request, "an instance keeps nothing")
        arguments = create_training_job(request, job_name(), sync)
        check_request(arguments)
        folder, settings = request.folder, request.settings
        files = {
            folder / REQUEST_FILE: json.dumps(arguments, indent=2) + "\n",
            folder / "Dockerfile": dockerfile([*request.extras, "cluster"]),
        }
        price = request.resources.max_price
        lines = [
            f"instances {settings['instances']} x {settings['instance']}, at most {request.resources.hours:g} h",
            "price     "
            + (f"${price:g} an hour at most, by your word" if price else "see AWS; the job does not cap it"),
            f"image     {settings['image']}",
            f"name      {arguments['TrainingJobName']}",
        ]
        command = ["aws", "sagemaker", "create-training-job", "--cli-input-json", f"file://{folder / REQUEST_FILE}"]
        source = json.loads(arguments["HyperParameters"]["sagemaker_submit_directory"])
        return JobPlan("sagemaker", request, files, command, lines, uploads=[source, sync])

    def submit(self, plan: JobPlan) -> str:
        """Upload the source, then create the job."""
        arguments = json.loads(plan.files[plan.request.folder / REQUEST_FILE])
        region = plan.request.settings.get("region")
        upload_source(json.loads(arguments["HyperParameters"]["sagemaker_submit_directory"]), region)
        with _aws_errors():
            _client("sagemaker", region).create_training_job(**arguments)
        return arguments["TrainingJobName"]

    def state(self, job: Job) -> JobState:
        """From DescribeTrainingJob."""
        with _aws_errors():
            told = _client("sagemaker", job.settings.get("region")).describe_training_job(TrainingJobName=job.ident)
        state = _STATES.get(told["TrainingJobStatus"], "gone")
        return "queued" if state == "running" and told.get("SecondaryStatus") in _QUEUED else state

    def stop(self, job: Job) -> None:
        """The container gets SIGTERM, and 120 s to save."""
        with _aws_errors():
            _client("sagemaker", job.settings.get("region")).stop_training_job(TrainingJobName=job.ident)

    def logs(self, job: Job) -> Iterator[Path]:
        """None here: they are in CloudWatch, and the run's own files in the store."""
        yield from ()


def upload_source(url: str, region: str | None) -> None:
    """Put the source tarball where the request says."""
    parts = urlparse(url)
    with _aws_errors():
        _client("s3", region).put_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"), Body=source_tarball())


def run_locally(plan: JobPlan, base: Path) -> int:
    """Run the job's container contract on this machine: AWS's toolkit fetches the source from S3 and starts it."""
    program = shutil.which("train")
    if program is None:
        raise LaunchError(
            "AWS's training toolkit is not here",
            remedy="pip install sagemaker-training    (in an environment of its own)",
        )
    arguments = json.loads(plan.files[plan.request.folder / REQUEST_FILE])
    source = json.loads(arguments["HyperParameters"]["sagemaker_submit_directory"])
    upload_source(source, plan.request.settings.get("region"))
    write_contract(base, hyperparameters(source))
    environment = {
        **os.environ,
        "SAGEMAKER_BASE_DIR": str(base),
        "TRAINING_JOB_NAME": arguments["TrainingJobName"],
        SYNC_VARIABLE: arguments["Environment"][SYNC_VARIABLE],
    }
    return subprocess.run([program], env=environment, check=False).returncode


def write_contract(base: Path, parameters: Mapping[str, str], hosts: Sequence[str] = ("localhost",)) -> None:
    """The files that SageMaker puts into a container before it starts it."""
    config = base / "input" / "config"
    config.mkdir(parents=True, exist_ok=True)
    resources = {"current_host": hosts[0], "hosts": list(hosts), "network_interface_name": "lo"}
    for name, content in (
        ("hyperparameters", parameters),
        ("resourceconfig", resources),
        ("inputdataconfig", {}),
    ):
        (config / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def _require_boto3() -> None:
    try:
        import boto3  # noqa: F401
    except ImportError:
        raise missing_package("boto3", "`--on sagemaker`") from None


def _client(service: str, region: str | None) -> Any:
    import boto3

    return boto3.client(service, region_name=region)


@contextmanager
def _aws_errors() -> Iterator[None]:
    """Turn what AWS refuses into one line; credentials are never part of it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise LaunchError(
            f"AWS refused: {str(error).splitlines()[0]}",
            remedy="look at the credentials and the region (`aws sts get-caller-identity`)",
        ) from None
