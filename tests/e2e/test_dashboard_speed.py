"""How quick the page is with 500 runs and a million metric rows. The seconds are printed (`-s`), never asserted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.many_runs import Size, write_tree
from tests.e2e.dashboard import WIDE, Visitor, chromium, seconds_until, served, tell

RUNS, SIZE = 500, Size(seeds=4, rows=500)
CHOSEN = ("ppo_cartpole/20261001-000000", "dqn_cartpole/20261001-000100", "a2c_cartpole/20261001-000200")


@pytest.mark.slow
def test_the_seconds_of_a_person_who_looks_at_500_runs(tmp_path: Path) -> None:
    write_tree(tmp_path / "runs", RUNS, SIZE)
    begun = time.monotonic()
    with served(tmp_path / "runs") as url, chromium() as browser:
        measured = [("process start to listening", time.monotonic() - begun)]
        visitor = Visitor(browser.new_page(viewport=WIDE), url, tmp_path)
        page = visitor.page
        card = page.locator('[data-metric="train/return"]')

        def until(name: str, act: object, seen: object) -> None:
            measured.append((name, seconds_until(act, seen)))

        until("opening to the first rows", visitor.go, lambda: page.locator(".run").first.wait_for())
        until("and to the first chart", lambda: None, lambda: visitor.charts(1))
        page.locator(".chip.all b", has_text=str(RUNS)).wait_for()
        measured.append(("start to all runs read", time.monotonic() - begun))
        page.get_by_label("Filter runs by text").fill("cartpole 20261001-000")
        for run in CHOSEN:
            name = run.partition("/")[0]
            until(
                f"choosing {run}",
                lambda run=run: visitor.tick(run),
                lambda name=name: card.get_by_text(name).wait_for(),
            )
        seconds = page.get_by_role("button", name="seconds")
        until("another axis", seconds.click, lambda: card.locator(".u-over").wait_for())
        group = page.get_by_label("Group by")
        until("grouping", lambda: group.select_option("env"), lambda: card.get_by_text("CartPole-v1").wait_for())
        until("another view", lambda: visitor.tab("Run"), lambda: visitor.sees("ppo_cartpole"))
        visitor.finish()
    tell(measured)
