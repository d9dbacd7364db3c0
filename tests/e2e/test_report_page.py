"""The HTML report in a real browser: wide and narrow, light and dark, offline, with hostile text in every place.

Screenshots are left in pytest's temporary folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operant.api.page import write_report
from operant.report.page.content import Media, gather
from operant.report.page.document import render
from operant.run.tags import change_tags
from tests.unit.report.trajectories import write_runs

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = (
    "</pre></details><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&\x1b[2J"
)
GIF = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"

pytest.importorskip("playwright", reason="playwright is not installed")
if BROWSER is None:
    pytest.skip("there is no Chromium on this machine: apt-get install chromium", allow_module_level=True)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports of research agents; of one whose words, events and spec are hostile; and of one with a board replay."""
    folder = tmp_path_factory.mktemp("pages")
    runs = write_runs(folder / "runs")
    words, hostile = (next((runs / name).glob("*")) for name in ("grpo_research", "grpo_titanic"))
    change_tags(words, ["paper"])
    write_report(words, folder / "words.html", video=False)
    spoil(hostile)
    trial = hostile / "trial_000"
    (folder / "hostile.html").write_text(
        render(gather(hostile, trial, Media(HOSTILE, video=GIF, kind="image/gif"), {}))
    )
    replay = f"<!doctype html><title>game</title><p id=p>{'board ' * 40}</p><script>p.textContent += ' moves'</script>"
    (folder / "replay.html").write_text(render(gather(words, words / "trial_000", Media("a game", replay=replay), {})))
    return folder


def spoil(experiment: Path) -> None:
    """Put markup wherever a run holds text that others may have written."""
    for session in experiment.glob("*/session_*"):
        with (session / "events.jsonl").open("a") as events:
            events.write(json.dumps({"kind": HOSTILE, "message": HOSTILE, "time": HOSTILE}) + "\n")
        rows = [json.loads(line) for line in (session / "episodes.jsonl").read_text().splitlines()]
        for row in rows:
            row["error"] = HOSTILE
            for turn in row.get("turns") or ():
                turn["text"] = HOSTILE + turn["text"]
        (session / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        document = json.loads((session / "run.json").read_text())
        document["name"] = HOSTILE
        document["spec"].setdefault("env", {})["name"] = HOSTILE
        (session / "run.json").write_text(json.dumps(document))
    (experiment / "spec.yaml").write_text(HOSTILE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", ["words", "hostile", pytest.param("replay", marks=pytest.mark.slow)])
def test_a_report_fits_the_screen_and_sends_nothing(
    browser: Any, pages: Path, tmp_path: Path, name: str, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((pages / f"{name}.html").as_uri())
    page.get_by_role("heading", name="Learning curves").wait_for()
    page.screenshot(path=tmp_path / f"{name}_{width}_{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg path.mean").count() >= 1
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, back[4:-1].split(","))) < 200) == (scheme == "dark")
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
    assert errors == []
    assert page.title() != "owned"
    assert page.locator("main script, main img[onerror]").count() == 0
    context.close()


def test_a_transcript_unfolds_and_a_replay_moves(browser: Any, pages: Path) -> None:
    page = browser.new_page()
    page.goto((pages / "words.html").as_uri())
    worst = page.locator("details.transcript", has_text="worst:").first
    worst.locator("summary").first.click()
    assert worst.get_by_text("assistant").first.is_visible()
    assert page.get_by_text("paper", exact=True).is_visible()
    page.goto((pages / "replay.html").as_uri())
    frame = page.frame_locator("iframe")
    page.locator("iframe").scroll_into_view_if_needed()
    frame.get_by_text("moves").wait_for()
    page.close()
