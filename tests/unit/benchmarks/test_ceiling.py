"""Results of games are stored while they go on; a won replay is checked by the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from benchmarks import hackmatrix_ceiling as ceiling
from benchmarks.hackmatrix_won import common, tell
from operant.envs.hackmatrix.viewer.replay import Replay, read_replays


class FakeTable:
    """Two games, of which the first is won in the second wave and the other goes on."""

    def __init__(self) -> None:
        self.games = [ceiling.Played(7), ceiling.Played(8)]
        self.waves = 0

    def fill(self) -> bool:
        return True

    def play(self, key: Any) -> None:
        self.waves += 1
        for game in self.games:
            game.actions.append(0)
        if self.waves == 2:
            self.games[0].ended, self.games[0].stage, self.games[0].total = ceiling.WON, 8, 700.0
        if self.waves == 4:
            raise KeyboardInterrupt


def test_a_run_that_is_cut_short_has_stored_what_it_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceiling, "SAVE_EVERY", -1.0)
    table: Any = FakeTable()
    with pytest.raises(KeyboardInterrupt):
        ceiling.play_games(table, 60.0, 0, lambda s: ceiling.save(tmp_path, "scripted", {}, table, s))
    found = json.loads((tmp_path / "ceiling.json").read_text())["scripted"]
    assert (found["games"], found["won"], found["unfinished"]) == (2, 1, 1)
    assert [row["ended"] for row in found["episodes"]] == ["won", "unfinished"]
    assert [replay.seed for replay in read_replays(tmp_path / "won_scripted.json")] == [7]


def test_players_are_stored_beside_each_other(tmp_path: Path) -> None:
    table: Any = FakeTable()
    for player in ("random", "scripted"):
        ceiling.save(tmp_path, player, {}, table, 1.0)
    assert set(json.loads((tmp_path / "ceiling.json").read_text())) == {"random", "scripted"}


def test_a_game_cut_off_counts_as_not_won() -> None:
    games = [ceiling.Played(seed, ended=ended) for seed, ended in enumerate(("won", "died", "unfinished", "won"))]
    rate = ceiling.summary(games, 1.0)["win_rate"]
    assert rate["point"] == 0.5
    assert rate["low"] < 0.5 < rate["high"]


def test_a_replay_that_does_not_win_is_refused() -> None:
    with pytest.raises(ValueError, match="seed 3 is not won"):
        tell(Replay.of(3, np.array([4])))


def test_no_won_game_is_told_as_such() -> None:
    assert common([]) == {"won": 0}
