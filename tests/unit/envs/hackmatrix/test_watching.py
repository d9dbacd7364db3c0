"""Policies at play, kept as replays."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np

import operant.envs.hackmatrix.gym  # noqa: F401  (registers the game)
from operant.envs.hackmatrix.replay import summary
from operant.envs.hackmatrix.watching import Decision, is_replayed, play_game, watch_games


def first_legal(seen: np.ndarray, mask: np.ndarray) -> Decision:
    return Decision(int(mask[0].argmax()), mask[0] / mask[0].sum(), float(seen.sum()))


def test_a_game_is_replayed_to_the_same_end():
    game = play_game(gym.make("HackMatrix-v0"), first_legal, 5)
    assert summary(game.replay)["reward"] == game.score
    assert game.terminated == (summary(game.replay)["ended"] in ("died", "won"))
    assert game.replay.probabilities is not None


def test_thoughts_are_left_out_where_a_policy_has_none():
    game = play_game(gym.make("HackMatrix-v0"), lambda _, mask: Decision(int(mask[0].argmax())), 5)
    assert (game.replay.probabilities, game.replay.values) == (None, None)


def test_games_are_shown_in_one_page(tmp_path: Path):
    page = tmp_path / "media" / "games.html"
    games = watch_games(gym.make("HackMatrix-v0"), first_legal, [5, 6], page)
    assert [game.replay.seed for game in games] == [5, 6]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_only_this_game_is_replayed():
    assert is_replayed("HackMatrix-v0", "terminal")
    assert is_replayed("HackMatrix-v0", Path("x.html"))
    assert not is_replayed("HackMatrix-v0", "window")
    assert not is_replayed("CartPole-v1", Path("x.gif"))
