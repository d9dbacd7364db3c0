"""scripts/pin.py: the block it rewrites and what it refuses to write."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "pin.py"


@pytest.fixture(scope="module")
def pin() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pin", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_block_is_found_and_the_rest_is_kept(pin: ModuleType) -> None:
    text = (SCRIPT.parents[1] / "pyproject.toml").read_text()
    head, block, tail = pin.split(text)
    assert head + block + tail == text
    assert '"numpy==' in block
    assert "torch==" in head
    assert "torch==" not in block


def test_a_manifest_without_markers_is_refused(pin: ModuleType) -> None:
    with pytest.raises(SystemExit, match="lacks the lines"):
        pin.split('[project]\nname = "operant"\n')


def test_one_exact_line_per_package_but_for_those_chosen_by_hand(pin: ModuleType) -> None:
    versions = {"numpy": {"2.4.6"}, "torch": {"2.10.0", "2.13.0"}, "anyio": {"4.1"}}
    assert pin.pins(versions, by_hand={"torch"}) == ["anyio==4.1", "numpy==2.4.6"]


def test_two_versions_of_a_package_ask_for_a_choice(pin: ModuleType) -> None:
    with pytest.raises(SystemExit, match="numpy has several versions"):
        pin.pins({"numpy": {"2.4.6", "2.5.4"}}, by_hand=set())
