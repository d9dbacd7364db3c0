from __future__ import annotations

import csv
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.errors import UsageError
from operant.report.plots import plot_trials
from operant.report.profile_plot import plot_profiles

Make = Callable[..., Path]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def text_of(svg: Path) -> str:
    return " ".join(element.text or "" for element in ElementTree.parse(svg).iter())


def test_three_files_and_the_data_that_was_drawn(make_trial: Make, tmp_path: Path) -> None:
    trial = make_trial({"returns": (20.0, 100.0)}, {"returns": (40.0, 200.0)})
    files = plot_trials([trial], tmp_path / "report")
    assert [file.name for file in files] == [f"train_return_by_frames.{kind}" for kind in ("svg", "png", "csv")]
    assert files[1].read_bytes().startswith(b"\x89PNG")
    rows = read_csv(files[2])
    assert list(rows[0]) == ["trial", "series", "frames", "train/return", "low", "high", "env"]
    means = [row for row in rows if row["series"] == "mean"]
    assert [float(row["train/return"]) for row in means] == [30.0, 150.0]
    assert [(float(row["low"]), float(row["high"])) for row in means] == [(20.0, 40.0), (100.0, 200.0)]
    assert [row["train/return"] for row in rows if row["series"] == "session_1"] == ["40.0", "200.0"]


def test_the_picture_names_its_axes_and_its_seeds(make_trial: Make, tmp_path: Path) -> None:
    text = text_of(plot_trials([make_trial({}, {})], tmp_path, "eval/score", "seconds")[0])
    for words in (
        "CartPole-v1",
        "greedy return in evaluation",
        "training time (s)",
        "ppo_cartpole, 2 seeds",
    ):
        assert words in text


def test_the_mean_ends_where_the_shortest_seed_does(make_trial: Make, tmp_path: Path) -> None:
    rows = read_csv(plot_trials([make_trial({}, {"returns": (10.0, 20.0)})], tmp_path)[2])
    assert [row["frames"] for row in rows if row["series"] == "mean"] == ["500.0", "750.0", "1000.0"]


def test_one_seed_has_no_band(make_trial: Make, tmp_path: Path) -> None:
    files = plot_trials([make_trial({})], tmp_path)
    assert "one seed, no interval" in text_of(files[0])
    assert {row["low"] for row in read_csv(files[2])} == {""}


def test_trials_are_told_apart(make_trial: Make, tmp_path: Path, spec: dict[str, Any]) -> None:
    dqn = {**spec, "name": "dqn_cartpole"}
    first, second = make_trial({}, {}), make_trial({}, {}, spec=dqn)
    rows = read_csv(plot_trials([first, second], tmp_path)[2])
    assert {row["trial"] for row in rows} == {"ppo_cartpole", "dqn_cartpole"}
    later = make_trial({}, {}, stamp="20250102-000000")
    rows = read_csv(plot_trials([first, later], tmp_path)[2])
    assert {row["trial"] for row in rows} == {"ppo_cartpole 20250101-000000", "ppo_cartpole 20250102-000000"}


def test_the_same_data_gives_the_same_svg(make_trial: Make, tmp_path: Path) -> None:
    trial = make_trial({}, {})
    first, second = (plot_trials([trial], tmp_path / name)[0].read_bytes() for name in ("a", "b"))
    assert first == second


def test_an_unknown_metric_names_those_there_are(make_trial: Make, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no session has the metric 'train/retrun'") as caught:
        plot_trials([make_trial({})], tmp_path, "train/retrun")
    assert caught.value.remedy is not None
    assert "train/return" in caught.value.remedy


def test_an_unknown_axis_and_a_run_without_rows(make_trial: Make, tmp_path: Path) -> None:
    trial = make_trial({"returns": (), "evals": {}, "final": None})
    with pytest.raises(UsageError, match="no axis 'steps'"):
        plot_trials([trial], tmp_path, x="steps")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no metric rows yet"):
        plot_trials([trial], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_importing_the_room_loads_no_heavy_module() -> None:
    code = (
        "import sys, operant.report.plots, operant.report.live, operant.report.tables, operant.report.curve;"
        "print([name for name in ('matplotlib', 'rich', 'torch', 'pydantic') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_environments_have_panels_of_their_own(make_trial: Make, tmp_path: Path, spec: dict[str, Any]) -> None:
    spec["env"]["name"] = "Acrobot-v1"
    trials = [make_trial({}, {}), make_trial({}, {}, spec=spec, stamp="20250102-000000")]
    svg, _, table = plot_trials(trials, tmp_path / "report")
    assert {row["env"] for row in read_csv(table)} == {"CartPole-v1", "Acrobot-v1"}
    assert all(f">{env}<" in svg.read_text() for env in ("CartPole-v1", "Acrobot-v1"))


def test_runs_are_pooled_by_a_setting(make_trial: Make, tmp_path: Path) -> None:
    trials = [make_trial({"seed": k}, stamp=f"2025010{k + 1}-000000") for k in range(3)]
    table = plot_trials(trials, tmp_path / "report", by="agent.algorithm.name")[2]
    rows = read_csv(table)
    assert {row["trial"] for row in rows} == {"algorithm=ppo"}
    assert len({row["series"] for row in rows}) == 4
    assert all(row["low"] for row in rows if row["series"] == "mean")


def test_cost_is_an_axis_where_a_price_is_known(make_trial: Make, tmp_path: Path) -> None:
    trial = make_trial({"returns": (20.0, 100.0), "final": None})
    with pytest.raises(UsageError, match="kept no account"):
        plot_trials([trial], tmp_path, x="cost")
    attempt = {"attempt": 1, "machine": "m", "began": "2025-01-01T00:00:00+00:00", "ended": "2025-01-01T00:00:02+00:00"}
    (trial / "session_0" / "cost.json").write_text(json.dumps({"format": 1, "attempts": [attempt]}))
    with pytest.raises(UsageError, match="price of this run is not known"):
        plot_trials([trial], tmp_path, x="cost")
    rows = read_csv(plot_trials([trial], tmp_path, x="cost", price=3600.0)[2])
    # Rows at half a second and a second, at a dollar a second.
    assert [(float(row["cost"]), float(row["train/return"])) for row in rows if row["series"] == "session_0"] == [
        (0.5, 20.0),
        (1.0, 100.0),
    ]


def test_a_run_without_tokens_has_no_such_axis(make_trial: Make, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="counts no tokens"):
        plot_trials([make_trial({})], tmp_path, x="tokens")


def test_profiles_are_of_normalized_scores(make_trial: Make, tmp_path: Path) -> None:
    trial = make_trial(*({"final": score, "seed": k} for k, score in enumerate((20.0, 259.47, 498.94, 498.94))))
    _, png, table = plot_profiles([trial], tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    share = {round(float(row["score"]), 4): float(row["share"]) for row in read_csv(table)}
    # Random play scored 20 in these runs and the reference is 498.94: the scores are 0, 0.5, 1 and 1.
    assert (share[0.0], share[0.25], share[0.75], share[1.0]) == (0.75, 0.75, 0.5, 0.0)


def test_profiles_of_problems_without_reference_are_not_put_together(
    make_trial: Make, tmp_path: Path, spec: dict[str, Any]
) -> None:
    spec["env"]["name"] = "my:Env-v0"
    other = make_trial({}, {}, spec=spec, stamp="20250102-000000")
    with pytest.raises(UsageError, match="no reference score is known for my:Env-v0"):
        plot_profiles([make_trial({}, {}), other], tmp_path)
    assert "score" in read_csv(plot_profiles([other], tmp_path)[2])[0]
