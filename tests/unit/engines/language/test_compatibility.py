"""What `operant check` accepts must not be refused by training: for want of room, or for adapters that do not fit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from operant.engines import engine_of
from operant.engines.language.policy.model import load_policy, write_folder
from operant.engines.language.policy.tiny import TinySizes
from operant.errors import UsageError
from operant.spec.load import load, load_mapping


def test_completions_that_do_not_fit_the_context_are_refused_before_training() -> None:
    spec = load("grpo_tiny", None, ["env.text.max_tokens=20000"]).spec
    with pytest.raises(UsageError, match=r"env\.text\.max_tokens: .* but the model's context is 64"):
        engine_of(spec).validate(spec)


def test_the_advice_is_accepted() -> None:
    spec = load("grpo_tiny", None, ["env.text.max_tokens=8"]).spec
    engine_of(spec).validate(spec)


def test_a_prompt_that_fills_the_context_needs_a_longer_one() -> None:
    spec = load("grpo_tiny", None, ["agent.model.tiny.context=16", "env.text.arguments={style: words}"]).spec
    with pytest.raises(UsageError) as refused:
        engine_of(spec).validate(spec)
    assert re.fullmatch(r"-s agent\.model\.tiny\.context=\d+", refused.value.remedy or "")


@pytest.mark.parametrize("source", ["tiny", "folder"])
def test_adapters_that_do_not_fit_the_model_are_refused_before_training(source: str, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    if source == "folder":
        source = str(write_folder(load_policy("tiny", tiny=TinySizes(1, 32, 2, 64)), tmp_path))
    words = [f"agent.model.source={source}", "agent.model.lora.rank=2"]
    spec = load("grpo_tiny", None, words).spec
    engine_of(spec).validate(spec)
    spec = load("grpo_tiny", None, [*words, "agent.model.lora.targets=[nonsense]"]).spec
    with pytest.raises(UsageError, match="LoRA settings do not fit the model"):
        engine_of(spec).validate(spec)


@pytest.mark.parametrize("setting", ["agent.algorithm.warmup={updates: 2}", "agent.algorithm.sft_coef=0.1"])
def test_a_task_without_gold_answers_is_refused_before_training_where_they_are_learnt_from(
    setting: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(f'{{"prompt": "{n}=", "answer": "{n}"}}\n' for n in range(40)))
    spec = load_mapping(
        {
            "env": {"name": str(file), "max_frame": 64, "text": {"arguments": {"verifier": "own:fn", "max_tokens": 4}}},
            "agent": {"algorithm": {"name": "grpo", "batch_size": 32, "group_size": 4}},
        },
        None,
        [setting],
    ).spec
    with pytest.raises(UsageError, match="has no gold answer to learn from"):
        engine_of(spec).validate(spec)


def test_a_session_loads_no_web_framework() -> None:
    code = "import sys, operant.engines.language.trainer; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "torch" in loaded
    assert not {"starlette", "uvicorn"} & set(loaded)
