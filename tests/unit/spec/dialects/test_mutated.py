"""Files of other labs with values and keys changed at random: converted, or refused at a place in the file.

The default suite takes a few, `-m slow` a thousand. Whatever comes of a file, each of its settings is explained.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from operant.errors import UsageError
from operant.spec.load import explain_all, load_all
from tests.unit.spec.dialects.test_every_value import FILES, content, places

VALUES: list[Any] = [
    0, -1, 3, 0.5, 1e300, "words", "", True, False, None, [], {}, [1, "a"], {"a": 1}, "PPO", "DQN", "OnPolicyReplay",
    "polyak", "shared", "GlobalAdam", "RecurrentNet", [[1]], "${x:-1}", {"name": "no_decay", "start_val": 1},
]  # fmt: skip


def mutated(data: Any, rng: Random) -> Any:
    """A copy with one to three places changed, taken away, or given to another key."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        *inside, last = rng.choice(list(places(data)))
        inner = data
        for key in inside:
            inner = inner[key]
        kind = rng.random()
        if kind < 0.6 or isinstance(inner, list):
            inner[last] = rng.choice(VALUES)
        elif kind < 0.8:
            del inner[last]
        else:
            inner[f"{last}x"] = inner.pop(last)
        if not data:
            return {"agent": {}}
    return data


def check(count: int, seed: int, folder: Path) -> tuple[int, int]:
    """How many were read, and how many refused."""
    rng, contents, counts = Random(seed), [content(file) for file in FILES], [0, 0]
    file = folder / "case.json"
    for number in range(count):
        data = mutated(rng.choice(contents), rng)
        file.write_text(json.dumps(data, indent=1))
        place = outcome(lambda: load_all(str(file), None, [], lossy=rng.random() < 0.3), f"{number} of seed {seed}")
        counts[place is not None] += 1
        assert place is None or place.startswith(str(file)), f"case {number} of seed {seed} is refused at {place}"
        outcome(lambda: explain_all(str(file), None), f"{number} of seed {seed}")
    return counts[0], counts[1]


def outcome(work: Callable[[], object], case: str) -> str | None:
    """The place of a refusal, if it is one; anything but a refusal fails."""
    try:
        work()
    except UsageError as refused:
        return str(refused.place)
    except Exception as fault:
        raise AssertionError(f"case {case} ended in {type(fault).__name__}: {fault}") from fault
    return None


def test_a_few_mutated_files_are_read_or_refused_at_their_place(tmp_path: Path) -> None:
    read, refused = check(40, 22, tmp_path)
    assert read, "some mutations change nothing that matters"
    assert refused, "others leave no spec"


@pytest.mark.slow
def test_a_thousand_mutated_files_are_read_or_refused_at_their_place(tmp_path: Path) -> None:
    check(1000, 2022, tmp_path)
