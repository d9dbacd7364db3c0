"""Streamlit's harness for tests runs a page as the main module, and leaves it there."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Put the main module back, for processes that later tests start would run the page in its place."""
    ours = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = ours
