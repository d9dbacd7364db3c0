"""What dstack is given: read by dstack's own parser where it is installed, and unpacked as its machine would."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from operant.launch.jobs.dstack import TASK_FILE, DstackPlace
from operant.launch.jobs.job import JobRequest, JobResources, LaunchError
from operant.launch.jobs.source import SOURCE_FILE
from operant.registry import Origin
from operant.spec.settings.launch import DstackSpec

CPU = JobResources(cpus=2, gpus=0, gpu=None, memory_gb=None, hours=1.5, max_price=None)
GPU = JobResources(cpus=4, gpus=0.5, gpu="L4", memory_gb=7.5, hours=24, max_price=0.8)
UPLOAD_LIMIT = 2 * 2**20  # of a dstack server, unless its owner has raised it
DSTACK_PYTHON = os.environ.get("OPERANT_DSTACK_PYTHON")
PARSE = """
import json, sys, yaml
from dstack._internal.core.models.configurations import parse_apply_configuration
from dstack._internal.core.services import validate_dstack_resource_name
task = parse_apply_configuration(yaml.safe_load(open(sys.argv[1])))
validate_dstack_resource_name(task.name)
print(json.dumps([task.max_duration, task.max_price, task.resources.gpu.name, task.resources.gpu.count.min]))
"""


def written(
    folder: Path,
    resources: JobResources = CPU,
    name: str = "job",
    sync: str = "s3://lab/runs",
    parts: Sequence[Origin] = (),
    **settings: object,
) -> Path:
    """The folder of the files of a plan for two tasks."""
    request = JobRequest(
        name=name,
        experiment=folder / "20261117-101500",
        tasks=[["a"], ["b"]],
        resources=resources,
        setup=["echo ready"],
        settings=DstackSpec.model_validate(settings).model_dump(mode="json"),
        extras=["deep", "cloud"],
        spec="toy",
        sync=sync,
        parts=parts,
    )
    plan = DstackPlace().plan(request)
    plan.write()
    return request.folder


def task_of(folder: Path) -> dict:
    return json.loads((folder / TASK_FILE).read_text().partition("\n")[2])


def test_resources_are_those_of_all_tasks_and_credentials_are_only_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    folder = written(tmp_path, GPU)
    task = task_of(folder)
    assert task["resources"] == {"cpu": "8..", "memory": "15GB..", "gpu": {"count": 1, "name": ["L4"]}}
    assert "AWS_SECRET_ACCESS_KEY" in task["env"]
    assert "HF_TOKEN" not in task["env"]
    assert not any(b"a-secret" in path.read_bytes() for path in folder.iterdir())
    assert task["commands"][-1].endswith("operant resume s3://lab/runs/toy/20261117-101500 --plain")
    assert "gpu" not in task_of(written(tmp_path, CPU))["resources"]


def test_the_source_fits_and_brings_what_an_installation_needs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("LIMIT = 1\n")
    part = Origin(module="mine", file=str(tmp_path / "mine.py"), folder=str(tmp_path), sha256="")
    source = written(tmp_path, parts=[part]) / SOURCE_FILE
    assert source.stat().st_size < UPLOAD_LIMIT
    with tarfile.open(source) as tar:
        names = set(tar.getnames())
        assert tar.getmember("scripts/uv").mode & 0o100
    assert {"pyproject.toml", "README.md", "operant/__main__.py", "mine.py"} < names
    assert not any("__pycache__" in name for name in names)
    assert source.read_bytes() == (written(tmp_path / "again", parts=[part]) / SOURCE_FILE).read_bytes()


def test_two_jobs_of_one_name_do_not_replace_each_other(tmp_path: Path) -> None:
    names = {task_of(written(tmp_path / place, name="n" * 60))["name"] for place in ("a", "b")}
    assert len(names) == 2


def test_a_folder_of_this_machine_is_out_of_reach(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"out of its reach"):
        written(tmp_path, sync=str(tmp_path))


@pytest.mark.slow
@pytest.mark.skipif(DSTACK_PYTHON is None, reason="OPERANT_DSTACK_PYTHON names no Python that has dstack")
@pytest.mark.parametrize(
    ("resources", "settings", "read"),
    [
        (CPU, {}, [5400, 0.15, None, 0]),
        (GPU, {"spot": "spot", "backends": ["aws"], "regions": ["eu-west-1"]}, [86400, 0.8, ["L4"], 1]),
    ],
)
def test_dstack_reads_the_task(tmp_path: Path, resources: JobResources, settings: dict, read: list) -> None:
    file = written(tmp_path, resources, name="n" * 60, **settings) / TASK_FILE
    ran = subprocess.run([str(DSTACK_PYTHON), "-c", PARSE, str(file)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == read
