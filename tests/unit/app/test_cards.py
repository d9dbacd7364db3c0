from __future__ import annotations

from html.parser import HTMLParser

import pytest

from operant.app.cards import card, pairs, tiles, timeline, title
from operant.report.timeline import side_by_side, steps
from operant.run.episode import Turn
from tests.unit.report.trajectories import search


class Balance(HTMLParser):
    """Notes every element that is left open or closed by another."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def checked(html: str) -> Balance:
    balance = Balance()
    balance.feed(html)
    assert (balance.open, balance.wrong) == ([], [])
    return balance


def one_step(*turns: Turn) -> str:
    from operant.run.episode import Episode
    from operant.run.progress import Progress

    (step,) = steps(Episode("t", "eval", 0, Progress(), 0.0, 1, "terminated", turns=turns))
    return card(step)


def test_every_step_of_every_episode_is_well_formed() -> None:
    for episode in search():
        html = timeline(steps(episode))
        checked(html)
        assert html.count("op-step ") >= len(steps(episode))


def test_words_cannot_become_markup() -> None:
    evil = '<script>alert("x")</script><img src=x onerror=y>'
    html = one_step(Turn("assistant", evil, tool=evil, fault=evil), Turn("tool", evil, tool=evil))
    assert checked(html).counts.keys() <= {"div", "span", "b"}
    assert html.count("&lt;script&gt;") == 5
    checked(tiles({evil: evil}))
    checked(title(evil, "#000000"))


def test_rewards_losses_and_faults_are_told_apart_in_words_too() -> None:
    assert "op-earned" in one_step(Turn("assistant", "validate", reward=0.5))
    assert "reward +0.5" in one_step(Turn("assistant", "validate", reward=0.5))
    assert "op-lost" in one_step(Turn("assistant", "validate", reward=-0.5))
    assert "fault: no action" in one_step(Turn("assistant", "hm", fault="no action"))


@pytest.mark.parametrize(("lines", "folded"), [(10, 0), (21, 0), (22, 1), (500, 1)])
def test_long_words_fold_and_nothing_is_lost(lines: int, folded: int) -> None:
    html = one_step(Turn("assistant", "\n".join(f"line {number}." for number in range(lines))))
    assert checked(html).counts.get("details", 0) == folded
    assert all(f"line {number}." in html for number in range(lines))


def test_a_very_long_line_is_cut_in_its_middle() -> None:
    html = one_step(Turn("assistant", "a" * 5000 + "b" * 5000))
    assert "9,400 characters" in html
    assert len(html) < 3000


def test_two_side_by_side_share_their_opening_and_one_may_be_over() -> None:
    first, second = search()[0], search()[1]
    html = pairs(side_by_side(first, second))
    checked(html)
    assert html.count("You are a careful researcher") == 1
    assert html.count(">over</div>") == 3
    assert html.count("same words") == 2
