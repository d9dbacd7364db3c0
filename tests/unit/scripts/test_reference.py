"""docs/reference says what the code says today."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "reference"
WRITTEN = {str(path.relative_to(FOLDER)): path.read_text() for path in sorted(FOLDER.rglob("*.md"))}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return runpy.run_path(str(ROOT / "scripts" / "reference.py"))["pages"]()


def test_the_pages_are_those_of_today(pages: dict[str, str]) -> None:
    assert WRITTEN.keys() == pages.keys()
    for name, text in pages.items():
        assert WRITTEN[name] == text, f"{name}: write it anew: scripts/uv run scripts/reference.py"


def test_every_setting_has_a_meaning() -> None:
    rows = [line for name, text in WRITTEN.items() if name != "index.md" for line in text.splitlines() if "| `" in line]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []
