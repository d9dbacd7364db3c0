"""What `operant check` accepts must not be refused by training: for want of room, or for adapters that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.engines import engine_of
from operant.engines.language.policy.model import load_policy, write_folder
from operant.engines.language.policy.tiny import TinySizes
from operant.errors import UsageError
from operant.spec.load import load


def test_completions_that_do_not_fit_the_context_are_refused_before_training() -> None:
    spec = load("grpo_tiny", None, ["env.text.max_tokens=20000"]).spec
    with pytest.raises(UsageError, match=r"env\.text\.max_tokens: .* but the model's context is 64"):
        engine_of(spec).validate(spec)


def test_the_advice_is_accepted() -> None:
    spec = load("grpo_tiny", None, ["env.text.max_tokens=8"]).spec
    engine_of(spec).validate(spec)


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
