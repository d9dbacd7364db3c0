"""Training whose completions are written by a server: the same run as at home, because the server keeps in step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from operant.engines import language
from operant.engines.language.policy.model import load_policy
from operant.engines.language.policy.tiny import TinySizes
from operant.errors import RunError, UsageError
from operant.run.metrics import read_rows
from operant.run.progress import without_timing
from operant.run.run import Run
from operant.spec.load import load
from tests.unit.engines.language.served_models import serving

SETTINGS = [
    "env.max_frame=192",
    "agent.model.tiny.width=32",
    "agent.model.tiny.heads=2",
    "agent.algorithm.batch_size=64",
    "agent.algorithm.warmup.updates=4",
    "meta.device=cpu",
    "meta.log_frequency=64",
    "meta.eval_frequency=128",
    "meta.eval_episodes=10",
    "meta.final_episodes=10",
]


def trained(path: Path, *settings: str) -> list[dict[str, Any]]:
    """The rows of a short run."""
    spec = load("grpo_tiny", overrides=[*SETTINGS, *settings]).spec
    language.validate(spec)
    run = Run.create(path, name="t", spec=spec.model_dump(mode="json"), seed=0, session=0, threads=1)
    language.train(run)
    return [without_timing(row) for row in read_rows(run.path / "metrics.jsonl")]


def test_a_server_that_keeps_in_step_changes_nothing(tmp_path: Path) -> None:
    near = trained(tmp_path / "near")
    # Other weights than the policy's: they must be replaced before the first word is written.
    with serving(load_policy("tiny", seed=9, tiny=TinySizes(2, 32, 2, 64)), allow_load=True) as server:
        far = trained(tmp_path / "far", "agent.model.generator=openai", f"agent.model.url={server.url}")
        assert server.service.generator.version > 0
    assert [set(row) for row in far] == [set(row) for row in near]
    for row, same in zip(far, near, strict=True):
        assert row == pytest.approx(same, abs=1e-4, nan_ok=True)


def test_a_server_that_cannot_keep_in_step_is_refused_before_work_starts(tmp_path: Path) -> None:
    with (
        serving(load_policy("tiny", tiny=TinySizes(2, 32, 2, 64))) as server,
        pytest.raises(UsageError, match="takes no new weights"),
    ):
        trained(tmp_path, "agent.model.generator=openai", f"agent.model.url={server.url}")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"http://127\.0\.0\.1:9/v1: the server does not answer"):
        trained(tmp_path, "agent.model.generator=openai", "agent.model.url=http://127.0.0.1:9")


def test_truncated_sampling_is_replayed_from_a_server_too(tmp_path: Path) -> None:
    cut = ("agent.algorithm.top_p=0.9", "agent.algorithm.top_k=20", "agent.algorithm.min_p=0.02", "env.max_frame=64")
    with serving(load_policy("tiny", seed=9, tiny=TinySizes(2, 32, 2, 64)), allow_load=True) as server:
        rows = trained(tmp_path, "agent.model.generator=openai", f"agent.model.url={server.url}", *cut)
    assert [row["policy/ratio"] for row in rows if "policy/ratio" in row] == [1.0]
    assert [abs(row["mismatch/kl"]) < 1e-8 for row in rows if "mismatch/kl" in row] == [True]


def test_a_server_that_gives_no_sampling_masks_is_refused_with_truncation(tmp_path: Path) -> None:
    with serving(load_policy("tiny", tiny=TinySizes(2, 32, 2, 64)), allow_load=True) as server:
        health = server.service.health
        server.service.health = lambda: {**health(), "sampling_masks": None}  # pyright: ignore[reportAttributeAccessIssue]
        wishes = ("agent.model.generator=openai", f"agent.model.url={server.url}", "agent.algorithm.min_p=0.1")
        with pytest.raises(UsageError, match="cannot be replayed"):
            trained(tmp_path, *wishes)
    assert list(tmp_path.iterdir()) == []
