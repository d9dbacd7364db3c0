"""SageMaker as a place that jobs can be sent to."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from operant.install import is_clone, missing_package
from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobState, LaunchError, refuse_nodes, require_sync
from operant.launch.jobs.source import SOURCE_FILE, source_tarball
from operant.launch.sagemaker.container import forwarding
from operant.launch.sagemaker.documents import ENTRYPOINT, ENTRYPOINT_FILE, IMAGE_FILE, dockerfile, image_script
from operant.launch.sagemaker.request import PROGRAM, check_request, create_training_job, job_name

REQUEST_FILE = "sagemaker.json"
TOOLKIT_VARIABLE = "OPERANT_SAGEMAKER_TRAIN"
# The toolkit may have an environment of its own, whose packages are no concern of the training.
PROGRAM_TEXT = '''"""Started by SageMaker's training toolkit on every host of the job."""

import os
import sys

os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
python = os.environ.get("OPERANT_PYTHON") or sys.executable
os.execv(python, [python, "-m", "operant.launch.sagemaker.container"])
'''
_STATES: dict[str, JobState] = {"InProgress": "running", "Stopping": "running"}
_QUEUED = ("Starting", "Pending", "LaunchingMLInstances", "PreparingTrainingStack", "DownloadingTrainingImage")


class SageMakerPlace:
    """The account and region of this machine's AWS settings, or of the spec."""

    def plan(self, request: JobRequest) -> JobPlan:
        """The request, held against AWS's own description of it, the source, and what builds the image."""
        refuse_nodes(request)
        _require_boto3()
        store = require_sync(request, "an instance keeps nothing", ("s3",))
        arguments = create_training_job(request, job_name(), store)
        check_request(arguments)
        folder, settings, price = request.folder, request.settings, request.resources.max_price
        files = {
            folder / REQUEST_FILE: json.dumps(arguments, indent=2) + "\n",
            folder / SOURCE_FILE: source_tarball(request.parts, {PROGRAM: PROGRAM_TEXT}),
            folder / ENTRYPOINT_FILE: ENTRYPOINT,
        }
        lines = [
            f"instances {settings['instances']} x {settings['instance']}, at most {request.resources.hours:g} h",
            "price     "
            + (f"${price:g} an hour at most, by your word" if price else "see AWS; the job does not cap it"),
            f"image     {settings['image']}",
        ]
        if is_clone():
            ray = ["cluster"] if settings["instances"] > 1 else []
            files[folder / "Dockerfile"] = dockerfile([*request.extras, *ray])
            files[folder / IMAGE_FILE] = image_script(settings["image"])
            lines += [f"          (sh {folder / IMAGE_FILE} builds and pushes it, once)"]
        lines += [f"name      {arguments['TrainingJobName']}", f"source    {_source(arguments)}"]
        command = ["aws", "sagemaker", "create-training-job", "--cli-input-json", f"file://{folder / REQUEST_FILE}"]
        return JobPlan("sagemaker", request, files, command, lines, store)

    def submit(self, plan: JobPlan) -> str:
        """Upload the source, then create the job."""
        arguments = upload_source(plan)
        with _aws_errors():
            _client("sagemaker", plan.request.settings["region"]).create_training_job(**arguments)
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


def upload_source(plan: JobPlan) -> dict[str, Any]:
    """Put the source where the request of the plan says; returns the request."""
    folder = plan.request.folder
    arguments = json.loads(plan.files[folder / REQUEST_FILE])
    parts = urlparse(_source(arguments))
    with _aws_errors():
        client = _client("s3", plan.request.settings["region"])
        client.put_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"), Body=plan.files[folder / SOURCE_FILE])
    return arguments


def run_locally(plan: JobPlan, base: Path) -> int:
    """Run the job's container contract on this machine: AWS's toolkit fetches the source from S3 and starts it.

    The files of the plan are written. The toolkit is the program `train` on the path, or the one that the variable
    OPERANT_SAGEMAKER_TRAIN names; training runs with this very Python.
    """
    toolkit = os.environ.get(TOOLKIT_VARIABLE) or shutil.which("train")
    if toolkit is None or shutil.which(toolkit) is None:
        raise LaunchError(
            "AWS's training toolkit is not here",
            remedy="pip install sagemaker-training    (in an environment of its own; then set"
            f" {TOOLKIT_VARIABLE} to its program `train`)",
        )
    arguments = upload_source(plan)
    write_contract(base, arguments["HyperParameters"])
    environment = {
        **os.environ,
        **arguments["Environment"],
        "SAGEMAKER_BASE_DIR": str(base),
        "TRAINING_JOB_NAME": arguments["TrainingJobName"],
        "OPERANT_PYTHON": sys.executable,
    }
    return forwarding(["bash", str(plan.request.folder / ENTRYPOINT_FILE), toolkit], environment)


def write_contract(base: Path, parameters: Mapping[str, str]) -> None:
    """The files that SageMaker puts into a container before it starts it."""
    config = base / "input" / "config"
    config.mkdir(parents=True, exist_ok=True)
    hosts = {"current_host": "localhost", "hosts": ["localhost"], "network_interface_name": "lo"}
    for name, content in (("hyperparameters", parameters), ("resourceconfig", hosts), ("inputdataconfig", {})):
        (config / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def _source(arguments: Mapping[str, Any]) -> str:
    return json.loads(arguments["HyperParameters"]["sagemaker_submit_directory"])


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
