"""What a person does once for SageMaker: the image and its commands, and the permissions, as documents to hand in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

DOCKERFILE = """FROM {base}
# The toolkit fetches the job's source from S3 and starts it; the packages are those of Operant's extras.
RUN pip install --no-cache-dir sagemaker-training
COPY . /opt/operant
RUN pip install --no-cache-dir "/opt/operant[{extras}]" && pip uninstall --yes operant
ENV PYTHONUNBUFFERED=1
"""
BASE_IMAGE = "python:3.12"


def dockerfile(extras: Sequence[str], base: str = BASE_IMAGE) -> str:
    """An image with the toolkit and every package that the spec's engine needs; the code comes with the job."""
    return DOCKERFILE.format(base=base, extras=",".join(extras))


def image_commands(account: str, region: str, repository: str, tag: str) -> list[str]:
    """Build the image and push it to ECR, command by command."""
    registry = f"{account}.dkr.ecr.{region}.amazonaws.com"
    image = f"{registry}/{repository}:{tag}"
    login = f"aws ecr get-login-password --region {region} | docker login --username AWS --password-stdin {registry}"
    return [
        f"docker build -t {shlex.quote(image)} -f Dockerfile .",
        f"aws ecr create-repository --region {region} --repository-name {shlex.quote(repository)}",
        login,
        f"docker push {shlex.quote(image)}",
    ]


def execution_policy(bucket: str, account: str, region: str) -> dict[str, Any]:
    """What the role of the job may do: read and write one bucket, pull the image, write logs."""
    logs = f"arn:aws:logs:{region}:{account}:log-group:/aws/sagemaker/*"
    return _policy(
        _allow(["s3:GetObject", "s3:PutObject"], f"arn:aws:s3:::{bucket}/*"),
        _allow(["s3:ListBucket"], f"arn:aws:s3:::{bucket}"),
        _allow(["ecr:GetAuthorizationToken"], "*"),
        _allow(
            ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchCheckLayerAvailability"],
            f"arn:aws:ecr:{region}:{account}:repository/*",
        ),
        _allow(["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"], logs),
    )


def user_policy(bucket: str, account: str, region: str, role: str) -> dict[str, Any]:
    """What whoever submits may do: the jobs, the bucket, and handing over that one role."""
    jobs = f"arn:aws:sagemaker:{region}:{account}:training-job/*"
    verbs = ("CreateTrainingJob", "DescribeTrainingJob", "StopTrainingJob")
    passes = _allow(["iam:PassRole"], role)
    passes["Condition"] = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    return _policy(
        _allow([f"sagemaker:{verb}" for verb in verbs], jobs),
        _allow(["s3:GetObject", "s3:PutObject"], f"arn:aws:s3:::{bucket}/*"),
        _allow(["s3:ListBucket"], f"arn:aws:s3:::{bucket}"),
        passes,
    )


def trust_policy() -> dict[str, Any]:
    """Who may take on the role of the job."""
    statement = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def iam_text(account: str, region: str, bucket: str, role: str) -> str:
    """The three documents as `operant launch --print-iam` prints them."""
    parts = {
        "trust policy of the job's role": trust_policy(),
        "permissions of the job's role": execution_policy(bucket, account, region),
        "permissions of whoever submits": user_policy(bucket, account, region, role),
    }
    return "\n".join(f"# {title}\n{json.dumps(document, indent=2)}" for title, document in parts.items())


def _policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(actions: Sequence[str], resource: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resource}
