"""Several processes that train one language model: what one would compute, and an end without loose ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from operant.run.layout import METRICS_FILE
from operant.run.progress import is_timing
from operant.run.run import Run
from operant.spec.schema import Spec
from tests.contract.conftest import create, differing, ended, finish, start_cold
from tests.processes import lives, started_by, wait_until

pytest.importorskip("transformers", reason="the language engine needs transformers")
IN_PROC = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for children in Linux's /proc")
TINY = {"layers": 2, "width": 32, "heads": 4, "context": 32}
EVERYTHING = {
    "minibatch_size": 32,
    "kl": "k3",
    "kl_coef": 0.01,
    "entropy_coef": 0.001,
    "sft_coef": 0.1,
    "pass_tokens": 300,
    "zero_variance": "keep",
    "warmup": {"updates": 4, "batch_size": 15, "lr": 1e-3},
}


def spec_for(processes: int, max_frame: int = 256, **algorithm: Any) -> Spec:
    """Four rounds of two steps. Adam's epsilon is large, because the gradient of a key's bias is noise around zero."""
    return Spec.model_validate(
        {
            "name": f"together-{processes}",
            "env": {"name": "copy", "max_frame": max_frame, "text": {"arguments": {"style": "bare", "letters": 3}}},
            "agent": {
                "algorithm": {"name": "grpo", "group_size": 8, "batch_size": 64, **(algorithm or EVERYTHING)},
                "model": {"source": "tiny", "tiny": TINY, "optimizer": {"lr": 1e-3, "eps": 1e-4}},
            },
            "meta": {
                "processes": processes,
                "save_frequency": 128,
                "log_frequency": 64,
                "eval_frequency": 256,
                "eval_episodes": 2,
                "final_episodes": 2,
            },
        }
    )


def newest(run: Run) -> Path:
    return sorted(path for path in run.checkpoints.iterdir() if path.name.isdigit())[-1]


def rows(run: Run) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (run.path / METRICS_FILE).read_text().splitlines()]
    return [{name: value for name, value in line.items() if value is not None} for line in lines]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two processes, from start to end."""
    run = create(tmp_path_factory.mktemp("two") / "run", spec_for(2))
    assert finish(run) == 0
    return run


def test_two_processes_compute_what_one_does(two: Run, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    one = create(tmp_path / "one", spec_for(1))
    assert finish(one) == 0
    for file in ("model.safetensors", "learner.safetensors"):
        alone, together = (load_file(newest(run) / file) for run in (one, two))
        assert alone.keys() == together.keys()
        for name, expected in alone.items():
            np.testing.assert_allclose(together[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)
    for expected, found in zip(rows(one), rows(two), strict=True):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert is_timing(name) or found[name] == pytest.approx(value, rel=1e-5, abs=1e-5), name


@pytest.mark.slow
def test_a_stop_and_a_resume_are_exact(two: Run, tmp_path: Path) -> None:
    halves = create(tmp_path / "halves", spec_for(2))
    assert finish(halves, "--until", "100") in (0, 4)
    assert finish(halves) == 0
    assert differing(halves, two) is None


def test_the_checkpoint_of_two_processes_is_a_plain_folder(two: Run) -> None:
    from transformers import AutoModelForCausalLM

    model, report = AutoModelForCausalLM.from_pretrained(newest(two), output_loading_info=True)  # pyright: ignore[reportGeneralTypeIssues]
    assert not report["missing_keys"]
    assert model.config.num_hidden_layers == TINY["layers"]


@IN_PROC
@pytest.mark.slow
def test_a_follower_that_is_killed_ends_the_run_with_its_name_and_the_run_goes_on(tmp_path: Path) -> None:
    run = create(tmp_path / "run", spec_for(2, max_frame=100_000))
    process = start_cold(run)
    [follower] = _followers_after(process, run, 3)
    os.kill(follower, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"process 1 of 0 to 1, with its share of the weights, died: SIGKILL" in errors
    assert b"operant resume" in errors
    assert run.state == "failed"
    saved = int(newest(run).name)
    assert finish(run, "--until", str(saved + 128)) in (0, 4)
    assert int(newest(run).name) > saved


@IN_PROC
@pytest.mark.slow
def test_no_follower_outlives_a_killed_leader(tmp_path: Path) -> None:
    run = create(tmp_path / "run", spec_for(2, max_frame=100_000))
    process = start_cold(run)
    [follower] = _followers_after(process, run, 2)
    process.kill()
    process.communicate()
    assert wait_until(lambda: not lives(follower)), "the follower outlived the leader"


def _followers_after(process: subprocess.Popen[bytes], run: Run, count: int) -> list[int]:
    """The processes that follow a session, once it has written so many rows."""
    file = run.path / METRICS_FILE
    while not file.exists() or file.read_bytes().count(b"\n") < count:
        if process.poll() is not None:
            ended(process)
        time.sleep(0.01)
    return started_by(process.pid, "import follow; follow()")
