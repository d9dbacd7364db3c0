from __future__ import annotations

import pytest

from operant.report.timeline import parting, same_opening, side_by_side, steps, totals
from operant.run.episode import Episode, Turn
from operant.run.progress import Progress


def episode(*turns: Turn, took: float | None = None) -> Episode:
    return Episode("blotto", "eval", 0, Progress(), 0.5, 3, "terminated", turns=turns, took=took)


ASKED = Turn("user", "Play.", 10)
WROTE = Turn("assistant", "write plan.txt 20 20", 6, "write", seconds=1.0)
WRITTEN = Turn("tool", "ok", 2, "write", seconds=0.5)
TRIED = Turn("assistant", "validate", 1, "validate", reward=0.25, score=0.06)
FAULTY = Turn("assistant", "hm", 1, reward=-0.05, fault="no action")


def test_the_opening_and_a_step_for_each_turn_of_the_policy() -> None:
    opening, first, second, third = steps(episode(ASKED, WROTE, WRITTEN, TRIED, FAULTY))
    assert (opening.number, opening.said, opening.heard) == (0, None, (ASKED,))
    assert (first.number, first.said, first.heard, first.tool) == (1, WROTE, (WRITTEN,), "write")
    assert (first.reward, first.total, first.seconds, first.read) == (None, 0.0, 1.5, 2)
    assert (second.reward, second.score, second.total) == (0.25, 0.06, 0.25)
    assert (third.fault, third.total) == ("no action", pytest.approx(0.2))


def test_an_episode_may_begin_with_the_policy_or_have_no_turns() -> None:
    assert [step.number for step in steps(episode(WROTE))] == [1]
    assert steps(episode()) == []


def test_an_answer_may_carry_the_reward() -> None:
    (step,) = steps(episode(Turn("assistant", "validate"), Turn("tool", "0.3", tool="validate", reward=0.3, score=0.3)))
    assert (step.reward, step.score, step.tool, step.total) == (0.3, 0.3, "validate", 0.3)


def test_totals_and_what_is_not_known() -> None:
    found = totals(episode(ASKED, WROTE, WRITTEN, TRIED, FAULTY))
    assert (found.turns, found.written, found.read, found.faults) == (3, 8, 12, 1)
    assert (found.reward, found.seconds) == (pytest.approx(0.2), 1.5)
    assert totals(episode(took=9.0)).seconds == 9.0
    assert (totals(episode(ASKED)).reward, totals(episode(ASKED)).seconds) == (None, None)


def test_two_episodes_stand_side_by_side_by_turn() -> None:
    rows = side_by_side(episode(ASKED, WROTE, TRIED), episode(ASKED, WROTE))
    assert [(left and left.number, right and right.number) for left, right in rows] == [(0, 0), (1, 1), (2, None)]
    assert same_opening(*rows[0])
    assert not same_opening(*rows[1])
    assert not same_opening(*rows[2])


@pytest.mark.parametrize(
    ("first", "second", "number"),
    [
        ((ASKED, WROTE, TRIED), (ASKED, WROTE, FAULTY), 2),
        ((ASKED, WROTE), (ASKED, WROTE, TRIED), 2),
        ((ASKED, WROTE, WRITTEN), (WROTE,), None),
        ((ASKED,), (), None),
    ],
)
def test_where_two_policies_part(first: tuple[Turn, ...], second: tuple[Turn, ...], number: int | None) -> None:
    assert parting(episode(*first), episode(*second)) == number
