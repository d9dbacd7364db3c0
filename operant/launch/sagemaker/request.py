"""The request that creates a training job, from a job's plan alone: nothing here talks to AWS."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from operant.launch.jobs.job import JobRequest, LaunchError

PROGRAM = "sagemaker_train.py"
STORE_VARIABLE = "OPERANT_RUN"  # the URL of the run in its store
CHECKPOINT_PATH = "/opt/ml/checkpoints"


def job_name(now: datetime | None = None) -> str:
    """A unique name that tells nothing of the work: job names are seen by everybody in the account."""
    moment = now or datetime.now(UTC)
    return f"operant-{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def create_training_job(request: JobRequest, name: str, store: str) -> dict[str, Any]:
    """The arguments of CreateTrainingJob. What the spec must say for it and does not is named."""
    settings, each = request.settings, request.resources
    _require(settings, ("role", "image", "bucket"))
    folder = f"s3://{settings['bucket']}/{settings['prefix'].strip('/')}"
    seconds = math.ceil(each.hours * 3600)
    arguments: dict[str, Any] = {
        "TrainingJobName": name,
        "RoleArn": settings["role"],
        "AlgorithmSpecification": {"TrainingImage": settings["image"], "TrainingInputMode": "File"},
        "HyperParameters": hyperparameters(f"{folder}/source/{name}/sourcedir.tar.gz"),
        "Environment": {STORE_VARIABLE: store},
        "OutputDataConfig": {"S3OutputPath": f"{folder}/output/"},
        "ResourceConfig": {
            "InstanceType": settings["instance"],
            "InstanceCount": settings["instances"],
            "VolumeSizeInGB": settings["volume_gb"],
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
    }
    if settings["spot"]:
        arguments["EnableManagedSpotTraining"] = True
        arguments["StoppingCondition"]["MaxWaitTimeInSeconds"] = 2 * seconds
        arguments["CheckpointConfig"] = {"S3Uri": f"{folder}/checkpoints/{name}/", "LocalPath": CHECKPOINT_PATH}
    if settings["subnets"]:
        arguments["VpcConfig"] = {"Subnets": settings["subnets"], "SecurityGroupIds": settings["security_groups"]}
    return arguments


def hyperparameters(source: str) -> dict[str, str]:
    """What AWS's training toolkit reads: the program and where its source is, each encoded as JSON."""
    return {"sagemaker_program": json.dumps(PROGRAM), "sagemaker_submit_directory": json.dumps(source)}


def check_request(arguments: Mapping[str, Any]) -> None:
    """Hold a request against AWS's own description of it; `LaunchError` names every field that is wrong."""
    from botocore.validate import ParamValidator

    shape = _request_shape()
    faults = [line for line in ParamValidator().validate(arguments, shape).generate_report().splitlines() if line]
    faults += _breaches(arguments, shape, "")
    if faults:
        raise LaunchError(f"SageMaker would refuse the job: {'; '.join(faults)}", place="meta.launch.sagemaker")


@cache
def _request_shape() -> Any:
    """AWS's description of the request; it is a large file, and a plan is made twice."""
    import botocore.session

    return (
        botocore.session.get_session().get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape
    )


def _breaches(value: Any, shape: Any, place: str) -> list[str]:
    """Patterns and lists of values, which botocore describes but does not check."""
    if shape.type_name == "structure":
        return [
            fault
            for name, child in value.items()
            if name in shape.members
            for fault in _breaches(child, shape.members[name], f"{place}.{name}".lstrip("."))
        ]
    if shape.type_name == "list":
        faults = [fault for child in value for fault in _breaches(child, shape.member, place)]
        most = shape.metadata.get("max")
        return faults + ([f"{place}: more than {most}"] if most and len(value) > most else [])
    if shape.type_name == "map":
        pairs = [
            (part, kind) for pair in value.items() for part, kind in zip(pair, (shape.key, shape.value), strict=True)
        ]
        return [fault for part, kind in pairs for fault in _breaches(part, kind, place)]
    if shape.type_name != "string":
        return []
    pattern, most = shape.metadata.get("pattern"), shape.metadata.get("max")
    faults = [] if not pattern or re.fullmatch(pattern, value) else [f"{place}: {value!r} does not match {pattern}"]
    faults += [f"{place}: longer than {most} characters"] if most and len(value) > most else []
    allowed: Sequence[str] = getattr(shape, "enum", ())
    return faults + ([f"{place}: {value!r} is unknown"] if allowed and value not in allowed else [])


def _require(settings: Mapping[str, Any], names: Sequence[str]) -> None:
    missing = [name for name in names if not settings.get(name)]
    if missing:
        wanted = " ".join(f"-s meta.launch.sagemaker.{name}=..." for name in missing)
        raise LaunchError(f"SageMaker needs {', '.join(missing)}", place="meta.launch.sagemaker", remedy=wanted)
