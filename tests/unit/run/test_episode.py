from __future__ import annotations

import json
import math

import pytest

from operant.run.episode import Episode, Turn
from operant.run.progress import Progress

AT = Progress(frames=5, updates=1, episodes=2)


def test_an_episode_survives_its_row():
    turns = (Turn("user", "2 + 2?"), Turn("assistant", "4", tokens=1, tool="calculator", reward=1.0))
    episode = Episode(
        "sums", "eval", 3, AT, 1.0, 2, "terminated", parts={"format": 0.5}, turns=turns, media="media/3.gif"
    )
    assert Episode.from_dict(json.loads(json.dumps(episode.as_dict()))) == episode


def test_a_plain_episode_is_a_flat_short_row():
    row = Episode("CartPole-v1", "train", 3, AT, 21.0, 21, "truncated").as_dict()
    assert list(row) == [*AT.as_dict(), "env", "split", "seed", "score", "length", "ended"]


def test_an_error_is_never_a_score():
    with pytest.raises(ValueError, match="score None"):
        Episode("CartPole-v1", "eval", 3, AT, 0.0, 4, "error")
    failed = Episode("CartPole-v1", "eval", 3, AT, None, 4, "error", error="the simulator died")
    assert Episode.from_dict(failed.as_dict()) == failed


def test_every_other_ending_needs_a_score():
    with pytest.raises(ValueError, match="has a score"):
        Episode("CartPole-v1", "eval", 3, AT, None, 4, "terminated")


def test_unknown_endings_are_refused():
    with pytest.raises(ValueError, match="terminated, truncated, error"):
        Episode("CartPole-v1", "eval", 3, AT, 1.0, 4, "done")  # type: ignore[arg-type]


def test_a_score_that_was_not_finite_comes_back_as_nan():
    row = {**Episode("CartPole-v1", "eval", 3, AT, 1.0, 4, "terminated").as_dict(), "score": None}
    score = Episode.from_dict(row).score
    assert score is not None
    assert math.isnan(score)
