"""What `operant check` accepts must not be refused by training for want of room in the model's context."""

from __future__ import annotations

import pytest

from operant.engines import engine_of
from operant.errors import UsageError
from operant.spec.load import load


def test_completions_that_do_not_fit_the_context_are_refused_before_training() -> None:
    spec = load("grpo_tiny", None, ["env.text.max_tokens=20000"]).spec
    with pytest.raises(UsageError, match=r"env\.text\.max_tokens: .* but the model's context is 64"):
        engine_of(spec).validate(spec)


def test_the_advice_is_accepted() -> None:
    spec = load("grpo_tiny", None, ["env.text.max_tokens=8"]).spec
    engine_of(spec).validate(spec)
