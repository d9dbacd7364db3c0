"""The app started as a person starts it, and a browser page that notes what must not happen."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def served(runs: Path, *more: str) -> Iterator[str]:
    """The address of the app; it must end well when it is told to."""
    words = [sys.executable, "-m", "operant", "app", str(runs), "--port", "0", "--no-browser", "--json", *more]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        said = b""
        while not said.endswith(b"}\n"):
            line = process.stdout.readline()
            assert line, "the app ended before it said where it is"
            said += line
        yield json.loads(said)["url"]
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
        process.stdout.close()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@dataclass
class Visitor:
    """A page with notes of errors and of words to other machines."""

    page: Any
    url: str
    shots: Path
    strangers: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(20_000)
        self.page.on("request", self._note_request)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note_console)

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.strangers.append(request.url)

    def _note_console(self, message: Any) -> None:
        if message.type == "error" and "400 (Bad Request)" not in message.text:
            self.errors.append(message.text)

    def go(self, place: str = "") -> None:
        """Open an address anew."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/{place}")

    def sees(self, title: str) -> None:
        """Wait for a heading."""
        self.page.get_by_role("heading", name=title).first.wait_for()

    def tab(self, name: str) -> None:
        """Go to a view."""
        self.page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()

    def tick(self, run: str) -> None:
        """Choose a run of the list, or leave it out."""
        self.page.locator(f'input[data-run="{run}"]').click()

    def charts(self, count: int) -> None:
        """Wait until so many charts are drawn."""
        self.page.locator(".u-over").nth(count - 1).wait_for()

    def shoot(self, name: str) -> None:
        """A picture for people."""
        self.page.screenshot(path=self.shots / f"{name}.png", animations="disabled")

    def place(self) -> str:
        """The part of the address that says where the page is."""
        return self.page.url.partition("#")[2]

    def is_within_its_width(self) -> bool:
        """Whether nothing makes the page scroll sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def finish(self) -> None:
        """Nothing that must not happen has happened."""
        assert self.errors == []
        assert self.strangers == [], "the app must send nothing anywhere"


def seconds_until(act: Any, seen: Any) -> float:
    """How long it takes from an act until something is seen."""
    begun = time.monotonic()
    act()
    seen()
    return time.monotonic() - begun


def tell(measured: Sequence[tuple[str, float]]) -> None:
    """Print measured seconds, for the log of the tests; time is never asserted."""
    for name, seconds in measured:
        print(f"{name}: {seconds:.2f} s")
