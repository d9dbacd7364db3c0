"""Replays: stored as seeds and actions, simulated again, shown in every way there is."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from operant.envs.hackmatrix.constants import ACTION_COUNT
from operant.envs.hackmatrix.faces.wire import observation
from operant.envs.hackmatrix.reference import Game
from operant.envs.hackmatrix.viewer.page import page
from operant.envs.hackmatrix.viewer.picture import HEIGHT, WIDTH
from operant.envs.hackmatrix.viewer.replay import Replay, dump_replays, frames, read_replays, summary
from operant.envs.hackmatrix.viewer.show import show
from operant.errors import UsageError


def play(seed: int, steps: int, *, thinking: bool = False) -> Replay:
    game, actions = Game(seed), []
    while len(actions) < steps:
        legal = game.legal()
        actions.append(legal[(7 * len(actions) + seed) % len(legal)])
        if game.step(actions[-1]).done:
            break
    if not thinking:
        return Replay(seed, tuple(actions))
    even = (1 / ACTION_COUNT,) * ACTION_COUNT
    return Replay(seed, tuple(actions), (even,) * len(actions), tuple(k / 2 for k in range(len(actions))))


def test_frames_are_the_game_again() -> None:
    replay = play(3, 100)
    game, total = Game(3), 0.0
    for frame, action in zip(frames(replay), (*replay.actions, None), strict=True):
        assert frame.obs == observation(game.state)
        assert frame.action == action
        assert frame.total == pytest.approx(total)
        if action is not None:
            total += game.step(action).reward
    assert frame.over == "died"
    assert summary(replay) == {
        "seed": 3, "steps": 29, "stage": 1, "score": 0, "reward": pytest.approx(-2.34), "ended": "died"
    }  # fmt: skip


@pytest.mark.parametrize("thinking", [False, True])
def test_a_file_brings_replays_back(tmp_path: Path, thinking: bool) -> None:
    replays = [play(1, 5, thinking=thinking), play(2, 5, thinking=thinking)]
    path = tmp_path / "games.json"
    path.write_text(dump_replays(replays))
    assert read_replays(path) == replays


def test_arrays_become_plain_numbers() -> None:
    chances = np.full((2, ACTION_COUNT), 1 / ACTION_COUNT, np.float32)
    replay = Replay.of(np.int64(3), np.array([0, 1], np.int32), chances, np.zeros(2, np.float32))
    assert json.loads(dump_replays([replay]))["episodes"][0]["actions"] == [0, 1]
    assert page([replay])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1, "game": "chess", "episodes": []}', '{"format": 2, "game": "HackMatrix-v0"}',
             '{"format": 1, "game": "HackMatrix-v0", "episodes": [{"seed": 1, "actions": [99]}]}',
             '{"format": 1, "game": "HackMatrix-v0", "episodes": [{"seed": 1, "actions": [0], "values": []}]}'],
)  # fmt: skip
def test_a_file_that_is_no_replay(tmp_path: Path, text: str) -> None:
    path = tmp_path / "games.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"this is no replay of HackMatrix-v0"):
        read_replays(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_replays(tmp_path / "none.json")


def test_the_likeliest_actions_and_the_one_that_is_taken() -> None:
    chances = [0.0] * ACTION_COUNT
    chances[0:4] = [0.4, 0.3, 0.2, 0.1]
    frame = next(frames(Replay(6, (4,), (tuple(chances),), (1.0,))))
    assert frame.legal == (3, 4)
    assert frame.likeliest(5) == [(3, 0.1), (4, 0.0)]
    assert frame.likeliest(1) == [(4, 0.0)]


def test_a_printed_replay() -> None:
    sink = io.StringIO()
    show([play(3, 4, thinking=True)], sink)
    text = sink.getvalue()
    assert text.count("seed 3   step ") == 5
    assert "next: " in text
    assert "value 1.50" in text
    assert "3.6 %" in text
    assert "\x1b" not in text


def test_a_gif(tmp_path: Path) -> None:
    show([play(3, 4, thinking=True), play(4, 2)], tmp_path / "game.gif")
    with Image.open(tmp_path / "game.gif") as video:
        assert video.size == (WIDTH, HEIGHT)
        assert getattr(video, "n_frames", 1) == 8


def test_an_mp4(tmp_path: Path) -> None:
    show([play(3, 3)], tmp_path / "game.mp4")
    assert (tmp_path / "game.mp4").read_bytes()[4:8] == b"ftyp"


def test_no_other_kind_of_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be written as \.avi"):
        show([play(3, 3)], tmp_path / "game.avi")


def test_the_page_needs_nothing_but_itself() -> None:
    text = page([play(3, 6, thinking=True), play(4, 2)])
    assert not re.search(r"(src|href)=|https?:|@import|url\(", text)
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert [len(one["frames"]) for one in data["episodes"]] == [7, 3]
    first = data["episodes"][0]["frames"][0]
    assert len(first["cells"]) == 36
    assert max(first["cells"]) < len(data["cells"])
    assert first["value"] == 0.0
    assert [action for action, _ in first["chances"]] == list(next(frames(play(3, 1))).legal)
    assert "value" not in data["episodes"][1]["frames"][0]


@pytest.mark.parametrize("thoughts", [{"probabilities": ((0.5, 0.5),)}, {"probabilities": ()}, {"values": (1.0, 2.0)}])
def test_thoughts_must_fit_the_actions(thoughts: dict) -> None:
    with pytest.raises(ValueError, match=r"28 numbers|do not fit"):
        Replay(1, (0,), **thoughts)
