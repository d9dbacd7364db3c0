"""What a person does once for SageMaker: the image and its commands, and the permissions, as documents to hand in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from operant.launch.jobs.source import SOURCE_FILE

ENTRYPOINT_FILE, IMAGE_FILE = "entrypoint.sh", "image.sh"
DOCKERFILE = f"""FROM python:3.12
# The toolkit fetches the job's source from S3 and starts it; the packages are those of Operant's extras.
RUN pip install --no-cache-dir sagemaker-training
ADD {SOURCE_FILE} /opt/operant/
RUN pip install --no-cache-dir "/opt/operant[{{extras}}]" && pip uninstall --yes operant && rm -r /opt/operant
COPY {ENTRYPOINT_FILE} /opt/{ENTRYPOINT_FILE}
ENV PYTHONUNBUFFERED=1 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENTRYPOINT ["bash", "/opt/{ENTRYPOINT_FILE}"]
"""
ENTRYPOINT = """#!/bin/bash
# AWS's toolkit does not pass on the SIGTERM that precedes the end of a job: it would die of it, and the program that it
# has started would never know. So the toolkit ignores the signal, and the program, which does not, saves.
set -m
(trap '' TERM; exec "$@") &
pid=$!
trap 'kill -TERM -- -"$pid"' TERM
while wait "$pid"; code=$?; kill -0 "$pid" 2>/dev/null; do :; done
exit "$code"
"""
_ECR = re.compile(
    r"(?P<registry>\d{12}\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com[.a-z]*)/(?P<repository>[^:@]+)"
)


def dockerfile(extras: Sequence[str]) -> str:
    """An image with the toolkit and every package that the spec's engine needs; the code comes with the job."""
    return DOCKERFILE.format(extras=",".join(extras))


def image_script(image: str) -> str:
    """Shell lines that build the image from the folder they are in and push it to its registry of ECR."""
    found = _ECR.match(image)
    lines = ["#!/bin/sh", "set -eu", f'docker build -t {shlex.quote(image)} "$(dirname "$0")"']
    if found:
        region, registry, repository = (found[name] for name in ("region", "registry", "repository"))
        named = f"--region {region} --repository-name{{}} {repository} >/dev/null"
        lines += [
            f"aws ecr describe-repositories {named.format('s')} ||",
            f"  aws ecr create-repository {named.format('')}",
            f"aws ecr get-login-password --region {region} | docker login --username AWS --password-stdin {registry}",
        ]
    return "\n".join([*lines, f"docker push {shlex.quote(image)}", ""])


def iam_documents(role: str, region: str, buckets: Sequence[str]) -> dict[str, Any]:
    """The three documents that `operant launch --print-iam` prints."""
    _, partition, _, _, account, _ = role.split(":", 5)
    own = f"{region}:{account}"
    store = [
        _allow(["s3:GetObject", "s3:PutObject"], [f"arn:{partition}:s3:::{bucket}/*" for bucket in buckets]),
        _allow(["s3:ListBucket"], [f"arn:{partition}:s3:::{bucket}" for bucket in buckets]),
    ]
    return {
        "trust policy of the job's role": trust_policy(),
        "permissions of the job's role": _policy(*store, *_image_and_logs(partition, own)),
        "permissions of whoever submits": _policy(*store, *_submits(partition, own, role)),
    }


def trust_policy() -> dict[str, Any]:
    """Who may take on the role of the job."""
    return _policy({"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"})


def _image_and_logs(partition: str, own: str) -> list[dict[str, Any]]:
    layers = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchCheckLayerAvailability"]
    logs = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
    return [
        _allow(["ecr:GetAuthorizationToken"], ["*"]),
        _allow(layers, [f"arn:{partition}:ecr:{own}:repository/*"]),
        _allow(logs, [f"arn:{partition}:logs:{own}:log-group:/aws/sagemaker/*"]),
    ]


def _submits(partition: str, own: str, role: str) -> list[dict[str, Any]]:
    """The jobs, and handing over that one role to SageMaker."""
    verbs = ("CreateTrainingJob", "DescribeTrainingJob", "StopTrainingJob")
    passes = _allow(["iam:PassRole"], [role])
    passes["Condition"] = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    return [
        _allow([f"sagemaker:{verb}" for verb in verbs], [f"arn:{partition}:sagemaker:{own}:training-job/*"]),
        passes,
    ]


def _policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
