"""The grid hacking game as single questions."""

from __future__ import annotations

from operant.envs.hackmatrix.constants import ACTION_NAMES
from operant.envs.text.hackmatrix import HackMatrix, position, worth
from operant.envs.text.tasks import make_task


def test_the_best_move_is_right_and_others_are_worth_less():
    task = make_task("hackmatrix", {})
    for problem in task.problems("train")[:20]:
        best = task.gold(problem)
        assert best is not None
        assert task.verify(problem, best).score == 1.0
        assert task.verify(problem, f"I would go there.\n**{best}**").score == 1.0
        for name in ACTION_NAMES:
            verdict = task.verify(problem, name)
            assert verdict.score is not None
            assert (verdict.score == 1.0) == (problem.answer.get(name) == max(problem.answer.values()))
            assert (verdict.score == 0.0) == (name not in problem.answer)


def test_an_answer_that_names_no_action_is_not_parsed():
    task = HackMatrix()
    problem = task.problems("eval")[0]
    assert task.verify(problem, "").outcome == "unparsed"
    assert task.verify(problem, "fly away").outcome == "unparsed"


def test_the_prompt_shows_board_and_actions_and_is_always_the_same():
    task = HackMatrix()
    first, again = task.problems("train")[3], HackMatrix().problems("train")[3]
    assert first == again
    assert "legal actions:" in first.prompt
    assert all(f"  {name}:" in first.prompt for name in first.answer)
    assert len(HackMatrix(style="bare").problems("train")[3].prompt) < len(first.prompt)


def test_asking_what_moves_are_worth_plays_none():
    game = position(5, 4)
    assert game is not None
    before = game.state
    assert worth(game) == worth(game)
    assert game.state == before
