"""docs/reference says what the code says today."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "reference"
PAGES: dict[str, str] = runpy.run_path(str(ROOT / "scripts" / "reference.py"))["pages"]()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_page_is_current(name: str) -> None:
    assert (FOLDER / name).read_text() == PAGES[name], "write it anew: scripts/uv run scripts/reference.py"


def test_no_page_is_left_over() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == PAGES.keys()


def test_every_setting_has_a_meaning() -> None:
    rows = [line for name, text in PAGES.items() if name != "index.md" for line in text.splitlines() if "| `" in line]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []
