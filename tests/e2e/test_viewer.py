"""The app in a real browser: from the runs to a list, a timeline, a comparison and a tree, and a run that grows.

Screenshots of every view, light and dark, are left in pytest's temporary folder.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from operant.app import server
from tests.unit.report.trajectories import TITANIC, training, write_rows, write_runs

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TRIES, EFFECT_MILLISECONDS = 5, 8000
HEADER_PIXELS, ROW_PIXELS, TICK_PIXELS = 35, 35, 15
SIZE = {"width": 1440, "height": 1000}
SEARCH = "search_blotto/20261115-183000"
LIVE = "grpo_titanic/20261115-190000"

for package in ("streamlit", "plotly", "playwright"):
    pytest.importorskip(package, reason=f"{package} is not installed")
if BROWSER is None:
    pytest.skip("there is no Chromium on this machine: apt-get install chromium", allow_module_level=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runs(tmp_path_factory.mktemp("viewer") / "runs")


@pytest.fixture(scope="module")
def url(runs: Path) -> Iterator[str]:
    """The app, started as a person starts it."""
    words = [sys.executable, "-m", "operant", "app", str(runs), "--port", "0", "--no-browser", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        said = b""
        while not said.endswith(b"}\n"):
            said += process.stdout.readline()
        address = json.loads(said)["url"]
        assert server.wait_until_ready(address, process)
        yield address
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
        process.stdout.close()


@dataclass
class Visitor:
    """A browser page that notes what must not happen: errors, and words to other machines."""

    page: Any
    url: str
    shots: Path
    strangers: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(60_000)
        self.page.on("request", self._note_request)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith((self.url, self.url.replace("http", "ws"), "data:", "blob:")):
            self.strangers.append(request.url)

    def go(self, query: str = "") -> None:
        self.page.goto(f"{self.url}/{query}")

    def sees(self, title: str) -> None:
        """Wait for a page with that title, fully drawn."""
        self.page.get_by_role("heading", name=title, exact=True).first.wait_for()
        self.page.locator('[data-testid="stStatusWidget"]').wait_for(state="detached")
        assert self.page.locator('[data-testid="stException"]').count() == 0

    def tick(self, row: int, seen: Any) -> None:
        """Tick a row of the table, which is drawn on a canvas, until its effect is seen."""
        table = self.page.locator('[data-testid="stDataFrame"]').first
        table.locator("canvas").first.wait_for()
        spot = {"x": TICK_PIXELS, "y": HEADER_PIXELS + ROW_PIXELS * row + ROW_PIXELS // 2}
        self.until(lambda: table.click(position=spot), seen)

    def until(self, act: Callable[[], object], seen: Any) -> None:
        """Act again where a click fell between two drawings of the page, as it may on a busy machine."""
        from playwright.sync_api import TimeoutError as TooLate

        for _ in range(TRIES):
            try:
                act()
                return seen.wait_for(timeout=EFFECT_MILLISECONDS)
            except TooLate:
                continue
        return seen.wait_for()

    def press(self, label: str) -> None:
        self.page.get_by_role("button", name=label, exact=True).first.click()

    def view(self, label: str) -> None:
        self.page.locator('[data-testid="stRadio"]').get_by_text(label, exact=True).click()

    def shoot(self, name: str) -> None:
        self.page.screenshot(path=self.shots / f"{name}.png", animations="disabled")

    def wait_for_address(self, part: str) -> None:
        self.page.wait_for_url(re.compile(re.escape(part)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(params=["light"])
def visitor(request: pytest.FixtureRequest, browser: Any, url: str, tmp_path: Path) -> Iterator[Visitor]:
    context = browser.new_context(viewport=SIZE, color_scheme=request.param)
    visitor = Visitor(context.new_page(), url, tmp_path)
    yield visitor
    context.close()
    assert visitor.errors == []
    assert visitor.strangers == [], "the app must send nothing anywhere"


def test_from_the_runs_to_a_list_a_timeline_a_comparison_and_a_tree(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go()
    visitor.sees("Runs")
    visitor.tick(1, page.get_by_role("heading", name=SEARCH))
    visitor.shoot("runs")

    visitor.press("Episodes")
    visitor.sees("Episodes")
    visitor.tick(2, page.get_by_role("paragraph").filter(has_text="n12"))
    visitor.shoot("list")

    visitor.press("Open timeline")
    visitor.sees("blotto · n12")
    visitor.wait_for_address("episode=n12")
    page.get_by_text("Turn 6").wait_for()
    page.locator(".js-plotly-plot").nth(1).wait_for()
    visitor.shoot("timeline")

    page.get_by_placeholder("Compare with another episode of this task").click()
    page.get_by_role("option", name="n1", exact=True).click()
    visitor.sees("Compare")
    visitor.wait_for_address("other=n1")
    page.get_by_text(re.compile("They diverge at turn")).wait_for()
    visitor.shoot("comparison")

    visitor.view("Search tree")
    visitor.sees("Search tree")
    page.get_by_role("heading", name="blotto · n12").wait_for()
    visitor.until(lambda: _click_node(page, 4), page.get_by_role("heading", name="blotto · n2", exact=True))
    visitor.wait_for_address("episode=n2")
    visitor.shoot("tree")


def _click_node(page: Any, place: int) -> None:
    """The `place`-th node of the tree, in its own order: n0, n1, n4, n5, n2, ...

    The chart hears a click only on a node that it has seen the mouse over, so that its label must show first.
    """
    point = page.locator(".js-plotly-plot .scatterlayer .trace").nth(2).locator(".points path").nth(place)
    point.wait_for(timeout=EFFECT_MILLISECONDS)
    box = point.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(0, 0)
    page.mouse.move(x, y, steps=3)
    page.locator(".hoverlayer .hovertext").first.wait_for(timeout=EFFECT_MILLISECONDS)
    page.mouse.click(x, y)


def test_two_ticked_rows_are_compared(visitor: Visitor) -> None:
    visitor.go(f"?run={SEARCH}")
    visitor.sees("Episodes")
    visitor.tick(0, visitor.page.get_by_role("paragraph").filter(has_text="n14"))
    visitor.tick(1, visitor.page.get_by_text("n14 and n13"))
    visitor.press("Compare two")
    visitor.sees("Compare")
    visitor.wait_for_address("episode=n14&other=n13")


@pytest.mark.parametrize("visitor", ["dark"], indirect=True)
def test_a_link_opens_its_view_in_the_dark_too(visitor: Visitor) -> None:
    visitor.go(f"?run={SEARCH}&episode=n9")
    visitor.sees("blotto · n9")
    visitor.page.get_by_text("fault: the command failed (exit 1)").wait_for()
    visitor.shoot("timeline_dark")
    background = visitor.page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert sum(int(part) for part in re.findall(r"\d+", background)[:3]) < 200
    visitor.go(f"?view=history&run={SEARCH}")
    visitor.sees("Score history")
    visitor.shoot("history_dark")


def test_a_run_that_is_being_written_is_followed(visitor: Visitor, runs: Path) -> None:
    file = runs / LIVE / "trial_000/session_0/episodes.jsonl"
    before = len(file.read_text().splitlines())
    visitor.go(f"?run={LIVE}")
    visitor.sees("Episodes")
    count = visitor.page.locator(".op-tile").first.locator("b")
    assert count.inner_text() == str(before)
    visitor.page.get_by_text("Follow a live run").click()
    write_rows(file, [each.as_dict() for each in list(training(9, [TITANIC]))[-3:]])
    visitor.page.locator(".op-tile").first.get_by_text(str(before + 3), exact=True).wait_for()
