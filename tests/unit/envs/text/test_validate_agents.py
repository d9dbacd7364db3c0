"""Whether a task of turns is sound, by its scripted agents: each kind must do as its kind should."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from operant.envs.text.dialogue import Dialogue, DialogueTask, Kind, Message, Response, Scripted
from operant.envs.text.task import Problem, Verdict, failed
from operant.envs.text.validate_agents import validate_with_agents


class Said(Dialogue):
    """Believes the number that it is told."""

    def __init__(self) -> None:
        self.text = ""

    def opening(self) -> tuple[Message, ...]:
        return (Message("user", "a number?"),)

    def hear(self, text: str, cut: bool = False) -> Response:
        self.text = text
        return Response(fault="no number" if text == "x" else None, done=True)

    def verdict(self) -> Verdict:
        if self.text == "none":
            return failed("the judge is ill")
        score = 0.0 if self.text == "x" else float(self.text)
        return Verdict(score, "right" if score else "wrong", {"hidden": score})


class Believer(DialogueTask):
    """Each agent says one word."""

    def __init__(self, words: Mapping[Kind, str], tolerance: float = 0.0) -> None:
        self.name = "believer"
        self.words = words
        self._tolerance = tolerance

    @property
    def tolerance(self) -> float:
        return self._tolerance

    def problems(self, split: str) -> Sequence[Problem]:
        return [Problem(f"believer/{split}/{n}", self.name, "a number?", None) for n in range(2)]

    def begin(self, problem: Problem, seed: int) -> Dialogue:
        return Said()

    def agents(self) -> Mapping[str, Scripted]:
        return {kind: Scripted(kind, kind, lambda *_, word=word: word) for kind, word in self.words.items()}


SOUND: dict[Kind, str] = {"novice": "0.4", "lazy": "0", "expert": "1", "cheater": "-0.2"}


def test_a_task_is_sound_where_every_agent_does_as_it_should() -> None:
    found = validate_with_agents(Believer(SOUND))
    assert found.sound
    assert [part.score for part in found.parts] == [0.4, 0.0, 1.0, -0.2]


@pytest.mark.parametrize(
    ("kind", "word", "said"),
    [
        ("expert", "0.9", "must reach 1"),
        ("lazy", "0.1", "must stay at 0"),
        ("lazy", "-0.1", "must stay at 0"),
        ("cheater", "0.01", "must not reach more than 0"),
        ("novice", "x", "well formed"),
        ("expert", "none", "the judge is ill"),
    ],
)
def test_what_an_agent_should_not_do_is_found(kind: Kind, word: str, said: str) -> None:
    found = validate_with_agents(Believer({**SOUND, kind: word}))
    assert not found.sound
    assert [said in part.problem for part in found.parts if part.problem] == [True]


def test_chance_is_allowed_for() -> None:
    assert validate_with_agents(Believer({**SOUND, "expert": "0.96", "cheater": "0.03"}, tolerance=0.05)).sound


def test_a_kind_that_nobody_wrote_is_missed() -> None:
    found = validate_with_agents(Believer({"lazy": "0", "expert": "1"}))
    assert (found.sound, found.missing) == (False, ["cheater", "novice"])
