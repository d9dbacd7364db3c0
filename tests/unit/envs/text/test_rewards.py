"""Reward functions: their settings come from their parameters, and their failures cost one value each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operant.envs.text.pool import Verifiers
from operant.envs.text.rewards import RewardFunctions, RewardInput, RewardRequest, regex, soft_overlong, takes_batches
from operant.errors import UsageError
from operant.spec.settings.rewards import REWARDS

FILE = """
import os, time
from typing import Annotated
from pydantic import Field

def longer(completion, answer, *, than: Annotated[int, Field(ge=1)] = 3, factor=0.5):
    '''Longer than a few characters.'''
    return factor * (len(completion) > than) + (completion == answer)

def ranks(completions, lengths, **kwargs):
    return [sorted(lengths).index(each) for each in lengths]

def faulty(completion):
    if completion == "raise": raise KeyError("gone")
    if completion == "sleep": time.sleep(30)
    if completion == "die": os._exit(1)
    return {"nan": float("nan"), "text": "x", "none": None}.get(completion, 1)

def too_few(completions): return [1]
def digits(completions): return "12"
def stranger(completion, reference): return 1
def mixed(completion, answers): return 1
def silent(*, strength=1.0): return 1
def typeless(completion, *, strength): return 1
def weighty(completion, *, weight=1.0): return 1
async def later(completion): return 1
class Odd: pass
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "odd_rewards.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("odd_rewards", None)
    for name in [name for name in REWARDS._own if name.startswith("odd_rewards")]:
        del REWARDS._own[name]


def request(*completions: str, function: int = 0) -> RewardRequest:
    inputs = (RewardInput("p", text, "abcd", [], len(text), 0.0) for text in completions)
    return RewardRequest(function, "task/train/0", tuple(inputs))


def computed(settings: dict[str, Any], *completions: str) -> list[float | str]:
    return RewardFunctions([settings]).compute(request(*completions))


def test_parameters_are_inputs_or_settings():
    name = "odd_rewards:longer"
    assert computed({"name": name}, "ab", "abcd") == [0.0, 1.5]
    assert computed({"name": name, "than": 1, "factor": 2.0}, "ab") == [2.0]
    assert list(REWARDS.find(name).model_fields) == ["name", "weight", "label", "than", "factor"]
    assert not takes_batches(REWARDS.find(name).model_validate({"name": name}))


def test_plural_names_take_a_batch():
    assert computed({"name": "odd_rewards:ranks"}, "abc", "a", "ab") == [2.0, 0.0, 1.0]


def test_a_failure_is_told_and_costs_no_other_value():
    found = computed({"name": "odd_rewards:faulty"}, "raise", "nan", "text", "none", "fine")
    assert found[:2] == ["KeyError: 'gone'", "returned nan"]
    assert str(found[2]).startswith("returned the text")
    assert str(found[3]).startswith("TypeError")
    assert found[4] == 1.0
    digits = computed({"name": "odd_rewards:digits"}, "a", "b")
    assert digits == ["returned the text '1'", "returned the text '2'"]
    few = computed({"name": "odd_rewards:too_few"}, "a", "b")
    assert few == ["ValueError: returned 1 values for 2 completions"] * 2


def test_worker_processes_survive_what_never_ends_or_dies():
    jobs = [request(each) for each in ("fine", "sleep", "die", "raise", "fine")]
    with Verifiers([], workers=1, seconds=0.5, rewards=[{"name": "odd_rewards:faulty"}]) as pool:
        found = [values[0] for values in pool.reward_all(jobs)]
    assert found == [
        1.0,
        "no verdict within 0.5 s",
        "the process that verified this died 2 times",
        "KeyError: 'gone'",
        1.0,
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stranger", "odd_rewards:stranger asks for reference, which no completion has"),
        ("mixed", "odd_rewards:mixed asks for both completion and answers"),
        ("silent", "odd_rewards:silent asks for nothing that was written"),
        ("typeless", "odd_rewards:typeless does not say what type strength has"),
        ("weighty", "the parameter weight of odd_rewards:weighty is a setting of every reward function already"),
        ("later", "odd_rewards:later is async"),
        ("Odd", "odd_rewards:Odd is the class Odd"),
    ],
)
def test_what_is_no_reward_function_is_refused(name: str, told: str):
    with pytest.raises(UsageError) as caught:
        REWARDS.find(f"odd_rewards:{name}")
    assert told in str(caught.value)


def test_the_built_in_ones():
    assert [regex(text, pattern="<a>.*</a>") for text in ("<a>x\ny</a>", "<a>x</a>.")] == [1.0, 0.0]
    assert [soft_overlong(length, max_length=10, buffer=4) for length in (6, 8, 10, 12)] == [0.0, -0.5, -1.0, -1.0]
