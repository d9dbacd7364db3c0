"""The report page without a browser: what it holds, and that nothing in it is taken for markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from operant.report.align import Curve
from operant.report.page.charts import chart, legend
from operant.report.page.content import Media, gather
from operant.report.page.document import render, text
from operant.report.plots import Line
from tests.unit.report.trajectories import write_runs

BAD = "</title><script>alert(1)</script>\x1b[2J"


class Elements(HTMLParser):
    """The elements of a page, by name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runs(tmp_path_factory.mktemp("page") / "runs")


def line(*seeds: list[float], label: str = "a") -> Line:
    curves = [Curve(np.arange(len(y), dtype=float), np.array(y)) for y in seeds]
    mean = Curve(curves[0].x, np.mean([curve.y for curve in curves], axis=0))
    low, high = (mean.y - 1, mean.y + 1) if len(curves) > 1 else (None, None)
    return Line(label, tuple((f"s{k}", curve) for k, curve in enumerate(curves)), mean, low, high)


def test_a_chart_has_a_band_over_seeds_and_a_dot_for_a_lone_point() -> None:
    drawn = chart([line([0.0, 1.0], [2.0, 3.0])], "return")
    assert (drawn.count('class="band"'), drawn.count('class="seed"'), drawn.count('class="mean"')) == (1, 2, 1)
    assert 'class="band"' not in chart([line([0.0, 1.0])], "return")
    assert 'class="dot"' in chart([line([4.0])], "return")
    assert chart([], "nothing") == ""
    assert "<script>" not in chart([line([1.0], label=BAD)], BAD) + legend([BAD, BAD])


def test_every_place_inside_a_chart() -> None:
    drawn = chart([line([float("1e9"), -5.0, 3.0])], "wild")
    numbers = [
        float(word)
        for part in drawn.split(' d="')[1:]
        for word in part.split('"')[0].replace("M", " ").replace("L", " ").split()
    ]
    assert 0 <= min(numbers) <= max(numbers) <= 380


def test_a_page_tells_of_score_episodes_alerts_provenance_and_spec(runs: Path) -> None:
    experiment = next((runs / "grpo_research").glob("*"))
    page = render(gather(experiment, experiment / "trial_000", Media(note="There is no video."), {}))
    elements = Elements(page)
    assert "script" not in elements.found
    assert all(link.startswith("#") for link in elements.links)
    for word in (
        "0.7964",
        "Learning curves",
        "best: prisoners_dilemma",
        "Alerts",
        "Provenance",
        "Spec",
        "grpo on research",
    ):
        assert word in page
    assert "There is no video." not in page, "where there are words nobody misses a video"


def test_texts_are_escaped_and_control_characters_shown() -> None:
    assert text(BAD) == "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;␛[2J"
    assert text("a\n\tb") == "a\n\tb"
