"""Aggregates, intervals, probability of improvement and profiles against rliable.

Frozen answers are compared by default. `OPERANT_RLIABLE_PYTHON=PYTHON pytest -m slow` asks rliable itself, in the
interpreter named, about new matrices; `OPERANT_GOLDEN=write` with it writes the frozen answers anew.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from operant.report.aggregates import aggregates
from operant.report.improvement import probability_of_improvement
from operant.report.profiles import performance_profile

HERE = Path(__file__).parent
FROZEN = HERE / "rliable_values.json"
PYTHON = os.environ.get("OPERANT_RLIABLE_PYTHON")
NEAR = 0.005
SHAPES = ((5, 5, 1), (8, 6, 5), (10, 10, 12))


def question(seed: int, seeds_a: int, seeds_b: int, tasks: int) -> dict[str, Any]:
    """Scores as they come: some tasks solved by nearly all, some by few, with values above 1 and below 0."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0.1, 0.9, size=tasks)
    a, b = (centre + shift + 0.15 * rng.standard_t(4, size=(n, tasks)) for n, shift in ((seeds_a, 0.05), (seeds_b, 0)))
    at = np.linspace(-0.2, 1.2, 15)
    # rliable tests each pair of a resample by itself, which takes a minute for 50,000 of twelve tasks.
    return {"a": a.tolist(), "b": b.tolist(), "at": at.tolist(), "pair_resamples": 20_000}


def ask(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """rliable's answers; its interpreter refuses other versions than those pinned."""
    assert PYTHON is not None
    script = [PYTHON, str(HERE / "rliable_reference.py")]
    done = subprocess.run(script, input=json.dumps(questions), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def hold(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """Ours within `NEAR` of theirs; points, which are not drawn, to rounding."""
    found = aggregates(asked["a"], resamples=50_000)
    found["probability_of_improvement"] = probability_of_improvement(
        asked["a"], asked["b"], resamples=50_000
    ).probability
    for name, ours in found.items():
        point, low, high = expected[name]
        assert ours.point == pytest.approx(point, abs=1e-12), name
        assert ours.low == pytest.approx(low, abs=NEAR), name
        assert ours.high == pytest.approx(high, abs=NEAR), name
    share, low, high = expected["profile"]
    profile = performance_profile(asked["a"], np.array(asked["at"]), resamples=20_000)
    assert profile.share == pytest.approx(np.array(share), abs=1e-12)
    # A share moves in steps of one run, and so do the ends of its interval.
    step = 1 / np.size(asked["a"]) + NEAR
    assert profile.low == pytest.approx(np.array(low), abs=step)
    assert profile.high == pytest.approx(np.array(high), abs=step)


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_frozen_answers(number: int) -> None:
    frozen = json.loads(FROZEN.read_text())
    hold(question(number, *SHAPES[number]), frozen["answers"][number])


@pytest.mark.slow
@pytest.mark.skipif(PYTHON is None, reason="OPERANT_RLIABLE_PYTHON names no interpreter with rliable")
@pytest.mark.timeout(1800)
def test_rliable_itself() -> None:
    fresh = [question(100 + number, *shape) for number, shape in enumerate(SHAPES)]
    for asked, expected in zip(fresh, ask(fresh)["answers"], strict=True):
        hold(asked, expected)


@pytest.mark.skipif(
    PYTHON is None or os.environ.get("OPERANT_GOLDEN") != "write", reason="writes the frozen answers anew"
)
def test_write_frozen_answers() -> None:
    told = ask([question(number, *shape) for number, shape in enumerate(SHAPES)])
    source = "rliable's answers to `question` of tests/oracle/test_rliable.py; see there how to write them anew"
    FROZEN.write_text(json.dumps({"source": source, **told}, indent=1) + "\n")
