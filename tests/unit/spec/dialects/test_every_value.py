"""Each value in a file of another lab, replaced by one of another kind, gives a spec or a refusal.

The fuzzer draws such cases; here every place is taken in turn. The default suite tries one wrong value at every fifth
place, `-m slow` all of them.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from operant.errors import UsageError
from operant.spec.load import load_all

HERE = Path(__file__).parent
FILES = sorted(file for folder in (HERE, HERE / "slm") for file in (folder / "files").iterdir() if file.is_file())
WRONG = ["words", True, [], {}, 0, -1, 1e300, [1, "a"], {"²": "²"}, None]


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value and of every section."""
    if path:
        yield path
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at the path."""
    data = copy.deepcopy(data)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


def content(path: Path) -> Any:
    """The file as plain data."""
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else YAML(typ="safe").load(text)


def try_all(data: Any, cases: list[tuple[tuple[Any, ...], Any]], folder: Path) -> tuple[int, int]:
    """How many were read, and how many refused."""
    counts = [0, 0]
    for path, value in cases:
        file = folder / "case.json"
        file.write_text(json.dumps(replaced(data, path, value)))
        try:
            load_all(str(file), None, [], False)
            counts[0] += 1
        except UsageError:
            counts[1] += 1
        except Exception as fault:
            raise AssertionError(f"{value!r} at {path} ended in {type(fault).__name__}: {fault}") from fault
    return counts[0], counts[1]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_wrong_value_here_and_there(file: Path, tmp_path: Path) -> None:
    data = content(file)
    cases = [(path, WRONG[number % len(WRONG)]) for number, path in enumerate(list(places(data))[::5])]
    _, refused = try_all(data, cases, tmp_path)
    assert refused, "some of them should not fit"


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_wrong_value_at_every_place(file: Path, tmp_path: Path) -> None:
    data = content(file)
    try_all(data, [(path, value) for path in places(data) for value in WRONG], tmp_path)
