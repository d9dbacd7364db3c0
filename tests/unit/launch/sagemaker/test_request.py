"""The request that creates a training job, the image, and the permissions, without AWS."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from operant.cli.app import run
from operant.launch.jobs.job import LaunchError
from operant.launch.sagemaker.documents import ENTRYPOINT, dockerfile, image_script
from operant.launch.sagemaker.request import check_request, job_name
from tests.processes import wait_until

pytest.importorskip("boto3")
ROLE = "arn:aws:iam::123456789012:role/train"
IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/lab/operant:1"


def request(**changes: Any) -> dict[str, Any]:
    good = {
        "TrainingJobName": job_name(),
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "Environment": {"OPERANT_RUN": "s3://lab/runs/toy/1"},
        "OutputDataConfig": {"S3OutputPath": "s3://lab/output/"},
        "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
    }
    return good | changes


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"TrainingJobName": "ppo_cartpole"}, "TrainingJobName"),
        ({"TrainingJobName": "a" * 64}, "TrainingJobName"),
        ({"TrainingJobName": "-a"}, "TrainingJobName"),
        ({"RoleArn": "arn:aws:iam::12:role/train"}, "RoleArn"),
        ({"ResourceConfig": {"InstanceType": "ml.m5.huge", "InstanceCount": 1, "VolumeSizeInGB": 10}}, "ml.m5.huge"),
        ({"Environment": {"OPERANT_RUN": "s3://" + "a" * 512}}, "Environment"),
        ({"VpcConfig": {"Subnets": [f"subnet-{n}" for n in range(17)], "SecurityGroupIds": ["sg-1"]}}, "Subnets"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 0}}, "MaxRuntimeInSeconds"),
        ({"Speed": 9}, "Speed"),
    ],
)
def test_what_sagemaker_would_refuse_is_named(changes: dict[str, Any], named: str) -> None:
    check_request(request())
    with pytest.raises(LaunchError, match=named):
        check_request(request(**changes))


def test_names_are_unique_and_tell_nothing() -> None:
    names = {job_name() for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) <= 63 and "cartpole" not in name for name in names)


@pytest.mark.parametrize("spec", [[], ["ppo_cartpole"]])
def test_permissions_are_one_json_document(spec: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"bucket": "lab", "role": ROLE, "region": "eu-west-1"}
    chosen = [part for name, value in settings.items() for part in ("-s", f"meta.launch.sagemaker.{name}={value}")]
    assert run(["launch", *spec, "--print-iam", *chosen, "-s", "meta.sync=s3://store/runs"]) == 0
    documents = json.loads(capsys.readouterr().out)
    statements = [each for policy in documents.values() for each in policy["Statement"]]
    assert {policy["Version"] for policy in documents.values()} == {"2012-10-17"}
    resources = [resource for each in statements for resource in each.get("Resource", [])]
    assert {"arn:aws:s3:::lab/*", "arn:aws:s3:::store/*", ROLE} < set(resources)
    assert [each["Action"] for each in statements if "*" in each.get("Resource", [])] == [["ecr:GetAuthorizationToken"]]


def test_a_role_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "--print-iam", "-s", "meta.launch.sagemaker.role=me"]) == 2
    assert "meta.launch.sagemaker.role" in capsys.readouterr().err


def test_the_image_is_built_and_pushed_by_a_script(tmp_path: Path) -> None:
    """docker and aws write down what they are asked."""
    script, asked = tmp_path / "image.sh", tmp_path / "asked"
    script.write_text(image_script(IMAGE))
    for program in ("docker", "aws"):
        (tmp_path / program).write_text(
            f'#!/bin/sh\necho {program} "$@" >> {asked}\n[ "$2" != describe-repositories ]\n'
        )
        (tmp_path / program).chmod(0o755)
    subprocess.run(["sh", str(script)], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=True)
    told = asked.read_text().splitlines()
    assert told[0] == f"docker build -t {IMAGE} {tmp_path}"
    assert "aws ecr create-repository --region eu-west-1 --repository-name lab/operant" in told
    assert told[-1] == f"docker push {IMAGE}"
    assert "operant[deep,cloud]" in dockerfile(["deep", "cloud"])


PROGRAM = """
import signal, subprocess, sys
saves = "import signal,sys,time; signal.signal(15, lambda *_: (open('saved','a').write('x'), sys.exit(4)));"
code = saves + "open('begun','w').close(); time.sleep(60)"
sys.exit(subprocess.call([sys.executable, '-c', code]))
"""


def test_a_stop_reaches_the_program_and_not_the_toolkit(tmp_path: Path) -> None:
    (tmp_path / "entrypoint.sh").write_text(ENTRYPOINT)
    with subprocess.Popen(["bash", "entrypoint.sh", sys.executable, "-c", PROGRAM], cwd=tmp_path) as container:
        assert wait_until((tmp_path / "begun").exists, 30)
        time.sleep(0.1)
        container.send_signal(signal.SIGTERM)
        assert container.wait(30) == 4
    assert (tmp_path / "saved").read_text() == "x"
