"""Trees of attempts that a policy directs: who goes on from where, what counts, and what is recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from operant.envs.research.directed import DirectedResearch, DirectedRollout
from operant.envs.text.dialogue import Message, Response
from operant.envs.text.task import Problem
from operant.errors import UsageError
from tests.unit.envs.research.conftest import GUESS, HALF, RIGHT

WRONG = HALF.replace("n % 2", "n < 0")


def directed(**arguments: object) -> DirectedResearch:
    return DirectedResearch(**{"task": GUESS, "nodes": 3, **arguments})  # pyright: ignore[reportArgumentType]


def begun(task: DirectedResearch, seed: int = 0) -> DirectedRollout:
    rollout = task.begin(task.problems("train")[3], seed)
    assert isinstance(rollout, DirectedRollout)
    return rollout


def direct(rollout: DirectedRollout, parent: str, direction: str) -> Response:
    return rollout.hear(f"PARENT: {parent}\nDIRECTION: {direction}")


def test_an_attempt_goes_on_from_the_files_of_its_parent() -> None:
    rollout = begun(directed())
    direct(rollout, "root", HALF)
    again = direct(rollout, "root.0", "```validate\n```")
    assert again.score is not None
    assert 0 < again.score < 1
    best = direct(rollout, "root.0", RIGHT)
    assert (best.score, best.done) == (1.0, True)
    assert "root.0.1: 1" in best.messages[0].text
    verdict = rollout.verdict()
    assert verdict.score == 1.0
    assert [(node.name, node.parent, node.best) for node in verdict.nodes] == [
        ("root.0", None, False),
        ("root.0.0", "root.0", False),
        ("root.0.1", "root.0", True),
    ]


def test_a_fresh_attempt_knows_nothing_of_its_parent() -> None:
    rollout = begun(directed(begin="fresh", nodes=2))
    direct(rollout, "root", RIGHT)
    assert direct(rollout, "root.0", "```validate\n```").score is None


def test_misspoken_words_cost_a_turn_and_no_attempt() -> None:
    rollout = begun(directed(nodes=1))
    for words, why in (("hello", "no direction"), ("PARENT: root.7\nDIRECTION: x", "no attempt root.7")):
        response = rollout.hear(words)
        assert why in (response.fault or "")
    assert response.done
    verdict = rollout.verdict()
    assert (verdict.score, verdict.nodes) == (0.0, ())
    assert [verdict.parts[key] for key in ("faults", "nodes", "binary", "last")] == [2, 0, -0.5, -0.5]


def test_a_lenient_tree_takes_words_without_form() -> None:
    rollout = begun(directed(nodes=2, lenient=True))
    assert rollout.hear(RIGHT).score == 1.0
    assert direct(rollout, "root.9", HALF).done
    assert [node.parent for node in rollout.verdict().nodes] == [None, None]
    assert "no direction" in (begun(directed(lenient=True)).hear("abc").fault or "")


def test_rewards_look_at_the_best_or_the_last_attempt() -> None:
    rollout = begun(directed(nodes=2, target=0.75))
    half = direct(rollout, "root", HALF)
    direct(rollout, "root", WRONG)
    parts = rollout.verdict().parts
    assert parts["measured"] == pytest.approx(half.score)
    assert (parts["binary"], parts["target"], parts["last"]) == (1.0, 0.2, 0.0)
    rollout = begun(directed(nodes=1, target=0.75))
    direct(rollout, "root", RIGHT)
    parts = rollout.verdict().parts
    assert (parts["target"], parts["last"]) == (1.0, pytest.approx(math.tanh(1e6) + 0.25))


def test_the_same_words_and_seed_give_the_same_tree() -> None:
    def grown() -> tuple[object, ...]:
        rollout = begun(directed(nodes=2), seed=5)
        told = [direct(rollout, "root", HALF), direct(rollout, "root.0", RIGHT)]
        return tuple(each.messages for each in told), rollout.verdict()

    assert grown() == grown()


class Talker:
    """An executor that remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[Sequence[Message]] = []

    def reply(self, problem: Problem, messages: Sequence[Message], seed: int) -> str | None:
        del problem, seed
        self.heard.append(list(messages))
        return "```bash\nls\n```" if len(self.heard) < 3 else None


def test_an_executor_is_told_the_task_and_the_direction_and_validated_at_the_end() -> None:
    task = directed(nodes=1, actions=5)
    task.player = talker = Talker()
    response = direct(begun(task), "root", "double it")
    assert [message.role for message in talker.heard[0]] == ["system", "user", "user"]
    assert talker.heard[0][-1].text == "double it"
    assert len(talker.heard) == 3
    assert (response.score, response.tool) == (None, "attempt")
    assert "cannot be scored" in (response.fault or "")


def test_scripted_agents_direct_and_execute() -> None:
    task = directed(executor="expert", nodes=1)
    rollout = begun(task)
    assert direct(rollout, "root", "as you like").score == 1.0
    novice = directed().agents()["novice"]
    words = novice.respond(directed().problems("train")[0], ())
    assert words.startswith("PARENT: root\nDIRECTION: ")


def test_mistakes_are_named() -> None:
    for arguments, cause in (
        ({"task": "guess"}, "guess is no research task"),
        ({"nodes": 0}, "nodes must be at least 1"),
        ({"begin": "else"}, "begin is no 'else'"),
    ):
        with pytest.raises(UsageError, match=cause):
            directed(**arguments)
    with pytest.raises(UsageError, match="is a model, which only training and evaluation load"):
        begun(directed(executor="tiny"))
