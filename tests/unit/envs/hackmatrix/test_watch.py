"""Policies at play, kept as replays."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np

from operant.envs.hackmatrix.viewer.replay import summary
from operant.envs.hackmatrix.viewer.show import replay_of
from operant.envs.watch import Decision, play_one, replays_of, watch_policy
from operant.run.progress import Progress
from operant.spec.settings.sections import EnvSpec


def first_legal(seen: np.ndarray, mask: np.ndarray | None, begins: np.ndarray) -> Decision:
    assert mask is not None
    return Decision(mask.argmax(-1), mask[0] / mask[0].sum(), float(seen.sum()))


def silent(seen: np.ndarray, mask: np.ndarray | None, begins: np.ndarray) -> Decision:
    return Decision(first_legal(seen, mask, begins).action)


def test_a_game_is_replayed_to_the_same_end():
    game = play_one(gym.make("HackMatrix-v0"), first_legal, 5, None)
    replay = replay_of(game.seed, game.decisions)
    assert summary(replay)["reward"] == game.score
    assert game.terminated == (summary(replay)["ended"] in ("died", "won"))
    assert replay.probabilities is not None


def test_thoughts_are_left_out_where_a_policy_has_none():
    replay = replay_of(5, play_one(gym.make("HackMatrix-v0"), silent, 5, None).decisions)
    assert (replay.probabilities, replay.values) == (None, None)


def test_each_game_says_where_it_begins(tmp_path: Path):
    begun: list[bool] = []

    def listening(seen: np.ndarray, mask: np.ndarray | None, begins: np.ndarray) -> Decision:
        begun.append(bool(begins[0]))
        return first_legal(seen, mask, begins)

    played = watch_policy(
        EnvSpec(name="HackMatrix-v0"), lambda: listening, range(5, 7), tmp_path / "x.html", Progress()
    )
    assert [k for k, begins in enumerate(begun) if begins] == [0, played[0].length]


def test_games_are_shown_in_one_page(tmp_path: Path):
    page = tmp_path / "media" / "games.html"
    games = watch_policy(EnvSpec(name="HackMatrix-v0"), lambda: first_legal, range(5, 7), page, Progress())
    assert [game.seed for game in games] == [5, 6]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_only_this_game_replays_of():
    assert replays_of("HackMatrix-v0", "terminal")
    assert replays_of("HackMatrix-v0", Path("x.html"))
    assert not replays_of("HackMatrix-v0", "window")
    assert not replays_of("CartPole-v1", Path("x.gif"))
