"""SLM-Lab spec files, whole and with single parts changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from operant.errors import SpecError, UsageError
from operant.spec.dialects.slm.convert import convert
from operant.spec.load import Loaded, load
from operant.spec.reading.document import Source, put
from operant.spec.reading.json import read_json
from operant.spec.reading.yaml import read_yaml

FILES = Path(__file__).parent / "files"
ABSENT = object()
Changed = Callable[..., Loaded]


def data_of(file: str, name: str) -> dict[str, Any]:
    """One spec of a file, as plain data."""
    text = (FILES / file).read_text()
    return (json.loads(text) if file.endswith("json") else read_yaml(Source(text)).data)[name]


def with_changes(data: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy with values put at dotted paths; ABSENT takes a key away."""
    for path, value in changes.items():
        *inside, last = path.split(".")
        if value is ABSENT:
            section = data
            for key in inside:
                section = section[key]
            data = put(data, tuple(inside), {key: each for key, each in section.items() if key != last})
        else:
            data = put(data, tuple(path.split(".")), value)
    return data


@pytest.fixture
def ppo() -> Changed:
    """PPO CartPole with some of its keys changed."""
    return _loader("ppo_cartpole.json", "ppo_cartpole")


@pytest.fixture
def dqn() -> Changed:
    """DDQN+PER Lunar with some of its keys changed."""
    return _loader("dqn_lunar.json", "ddqn_per_lunar")


def _loader(file: str, name: str) -> Changed:
    def loaded(changes: dict[str, Any] | None = None, overrides: Sequence[str] = (), lossy: bool = False) -> Loaded:
        data = with_changes({**data_of(file, name), "search": None}, changes or {})
        Path("slm.json").write_text(json.dumps({name: data}, indent=2))
        return load("slm.json", name, overrides, lossy)

    return loaded


def refusal(loader: Changed, changes: dict[str, Any], lossy: bool = False) -> str:
    """What the person is told about a spec so changed."""
    with pytest.raises(UsageError) as caught:
        loader(changes, lossy=lossy)
    assert caught.value.exit_code == 2
    return str(caught.value)


def native(data: dict[str, Any], lossy: bool = False) -> tuple[dict[str, Any], list[str]]:
    """What a spec says in native words, whether or not this version has all of them, and the remarks on it."""
    document = read_json(Source(json.dumps({"name": "spec", **data}, indent=2), "slm.json"))
    converted = convert(document, lossy)
    return converted.document.data, [str(remark) for remark in converted.remarks]


def refused(data: dict[str, Any]) -> str:
    """Why the spec has no native form."""
    with pytest.raises(SpecError) as caught:
        native(data)
    return str(caught.value)


def spec_of(algorithm: dict[str, Any], memory: dict[str, Any], net: dict[str, Any], **env: Any) -> dict[str, Any]:
    """A small spec around what a test is about."""
    return {
        "agent": {"name": "label", "algorithm": algorithm, "memory": memory, "net": net},
        "env": {"name": "CartPole-v1", "num_envs": 4, "max_t": None, "max_frame": 10_000, **env},
        "meta": {"distributed": False, "max_session": 2, "max_trial": 1},
    }
