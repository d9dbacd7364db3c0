"""`operant plan` on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from operant.cli.plan import quantity
from operant.errors import EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from tests.cli.conftest import Operant

STATED_RATES = "--generate-tokens-per-second 8000 --decode-step-seconds 0.02 --train-tokens-per-second 12000"
STATED = (*STATED_RATES.split(), "--mean-length", "1500", "--weights", "15GB", "--verify-seconds", "0.05")
STALE = ("-s", "agent.algorithm.staleness=4")


def test_a_plan_says_what_was_asked(operant: Operant) -> None:
    shown = operant("plan", "grpo_tiny", "--nodes", "4", "--gpus", "8", "--price", "3", *STATED, *STALE)
    assert shown.code == 0
    for words in ("samples/s", "tokens/s", "idle", "staleness", "$", "a lost trainer node", "best split", "-s meta."):
        assert words in shown.out
    assert shown == operant("plan", "grpo_tiny", "--nodes", "4", "--gpus", "8", "--price", "3", *STATED, *STALE)


def test_json_has_the_same_numbers(operant: Operant) -> None:
    shown = operant("plan", "grpo_tiny", "--nodes", "2", "--gpus", "4", "--price", "2", "--json", *STATED, *STALE)
    found = json.loads(shown.out)
    best = found["best_supported"]
    assert found["machines"]["nodes"] == 2
    assert best["dollars"] == pytest.approx(best["seconds"] * 8 * 2 / 3600)
    assert best["samples_per_second"] <= found["best"]["samples_per_second"]
    assert best["most_staleness"] <= 4
    assert set(best["idle"]) <= {"trainers", "generators", "verifiers"}
    assert found["lost_node"][0]["node"] == "trainer"
    assert found["rates_from"] == "stated"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("grpo_tiny", "--nodes", "0"), "--nodes is 0"),
        (("grpo_tiny", "--gpus", "-1"), "--gpus is -1"),
        (("grpo_tiny", "--price", "-1"), "--price is -1"),
        (("grpo_tiny", "--train-tokens-per-second", "nan"), "--train-tokens-per-second is nan"),
        (("grpo_tiny", "--bandwidth", "fast"), "'fast' is no bandwidth"),
        (("grpo_tiny", "--weights", "15GB/s"), "'15GB/s' is no size"),
        (("ppo_cartpole",), "ppo has no generators and verifiers"),
        (("grpo_tny",), "grpo_tiny"),
        (("grpo_tiny", "--trainers", "9", "--generators", "1", *STATED), "do not fit 8 GPUs"),
        (("grpo_tiny", "-s", "env.text.max_tokens=64", *STATED), "env.text.max_tokens is 64"),
    ],
)
def test_nonsense_is_told_in_a_line(operant: Operant, words: tuple[str, ...], told: str) -> None:
    shown = operant("plan", *words)
    assert shown.code == EXIT_USAGE
    assert told in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_bits_and_bytes() -> None:
    assert quantity("400Gb/s", "--bandwidth", rate=True) == 50e9
    assert quantity("50 GB/s", "--bandwidth", rate=True) == 50e9
    assert quantity("1.5GB", "--weights", rate=False) == 1.5e9
    with pytest.raises(UsageError, match="is no bandwidth"):
        quantity("0Gb/s", "--bandwidth", rate=True)
