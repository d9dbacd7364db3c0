"""Trials held against each other: a winner only where the seeds allow one, and only among equals in problem."""

from __future__ import annotations

import copy
import shutil

import numpy as np
import pytest

from operant.errors import UsageError
from operant.report.compare import compare
from operant.report.sides import label

STAMPS = [f"202501{day:02d}-000000" for day in range(1, 10)]
GOOD, BAD = (480.0, 490.0, 485.0, 495.0), (100.0, 120.0, 110.0, 130.0)


@pytest.fixture
def trial(make_trial, spec):
    """`trial(scores, stamp number, changed settings of the spec by dotted path)`"""

    def make(scores, number=0, seed=None, **changes):
        changed = copy.deepcopy(spec)
        for path, value in changes.items():
            *parents, last = path.split("__")
            place = changed
            for part in parents:
                place = place[part]
            place[last] = value
        first = 100 * number if seed is None else seed
        sessions = ({"final": score, "seed": first + k, "returns": (score, score)} for k, score in enumerate(scores))
        return make_trial(*sessions, stamp=STAMPS[number], spec=changed)

    return make


def test_a_clear_winner_is_named(trial):
    verdict = compare([trial(GOOD), trial(BAD, 1)])
    assert verdict.pairs[0].verdict == "A better"
    assert [estimate and estimate.point for estimate in (verdict.a.mean, verdict.a.iqm)] == [487.5, 487.5]
    assert "would need" not in str(verdict)
    assert "A beats B with probability 1.00 (every pair), p = 0.029" in str(verdict)


def test_overlapping_scores_name_nobody_and_say_how_many_seeds_it_takes(trial):
    verdict = compare([trial(GOOD), trial((484.0, 491.0, 479.0, 496.5), 1)])
    assert verdict.pairs[0].verdict == "no clear difference"
    assert verdict.seeds is not None
    assert verdict.seeds > 100
    assert f"would need {verdict.seeds} seeds each" in str(verdict)


def test_two_seeds_are_too_few_whatever_they_score(trial):
    verdict = compare([trial(GOOD), trial((10.0, 11.0), 1)])
    assert verdict.pairs[0].verdict.startswith("cannot tell")
    assert "any verdict needs 4 seeds each or more" in str(verdict)


def test_more_comparisons_take_more_seeds(trial):
    """Four against four fall into perfect order by chance in 2 of 70 deals: enough for one pair, not for three."""
    four = compare([trial(GOOD), trial(BAD, 1), trial([score - 50 for score in BAD], 2)])
    assert {pair.verdict for pair in four.pairs} == {"cannot tell: 4 against 4 seeds are too few for any verdict"}
    assert "any verdict needs 5 seeds each or more among 3 comparisons" in str(four)
    five = compare([trial((*GOOD, 470.0), 3), trial((*BAD, 140.0), 4), trial((1.0, 2.0, 3.0, 4.0, 5.0), 5)])
    assert [pair.verdict for pair in five.pairs] == ["A better", "A better", "B better"]
    first = five.pairs[0].comparison
    assert first is not None
    assert first.p == pytest.approx(3 * 2 / 252)


def test_the_seeds_for_a_difference_that_is_asked_about(trial):
    verdict = compare([trial(GOOD), trial(BAD, 1)], difference=5.0)
    assert "a difference of 5 would need" in str(verdict)
    assert verdict.seeds == 106  # deviation 12.91, z 1.96 and 0.84: 2 (2.80 * 12.91 / 5)^2 + 0.96


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"env__name": "Acrobot-v1"}, 'other problems, env.name "CartPole-v1" and "Acrobot-v1"'),
        ({"env__kwargs": {"goal": 2}}, 'other problems, env.kwargs unset and {"goal": 2}'),
        ({"meta__final_episodes": 10}, "other problems, meta.final_episodes 100 and 10"),
        ({"meta__eval_seed": 7}, "other problems, meta.eval_seed unset and 7"),
    ],
)
def test_no_probability_across_problems(trial, changes, words):
    verdict = compare([trial(GOOD), trial(BAD, 1, **changes)])
    assert verdict.comparison is None
    assert verdict.pairs[0].verdict == f"not compared: {words}"
    assert verdict.as_dict()["probability"] is None
    assert "beats" not in str(verdict)


def test_what_only_the_learner_sees_is_no_other_problem(trial):
    changes = {"env__num_envs": 8, "env__max_frame": 500, "env__normalize_obs": True}
    assert compare([trial(GOOD), trial(BAD, 1, **changes)]).comparison is not None


def test_the_same_run_under_two_names(trial, tmp_path):
    run = trial(GOOD)
    copied = tmp_path / "copied"
    shutil.copytree(run, copied)
    assert compare([run, run]).pairs[0].verdict == "not compared: the same run"
    assert compare([run, copied]).pairs[0].verdict == "not compared: the same run"
    assert compare([run, run / "session_1"]).pairs[0].verdict == "not compared: they share 1 of their sessions"


def test_a_repetition_is_no_second_piece_of_evidence(trial):
    run, again = trial(GOOD, 0, seed=0), trial(GOOD, 1, seed=0)
    for session in range(4):
        rows = (again / f"session_{session}" / "metrics.jsonl").read_text()
        (again / f"session_{session}" / "metrics.jsonl").write_text(rows.replace('"seconds": 1.0', '"seconds": 1.5'))
    assert compare([run, again]).pairs[0].verdict == "not compared: one repeats the other: same seeds, same rows"


def test_runs_are_taken_together_by_a_setting(trial):
    low = {"agent__algorithm": {"name": "dqn"}}
    runs = [trial(GOOD), trial((500.0, 499.0), 1), trial(BAD, 2, **low), trial((90.0, 80.0), 3, **low)]
    verdict = compare(runs, by="agent.algorithm.name")
    assert [(side.name, side.seeds) for side in verdict.sides] == [("algorithm=ppo", 6), ("algorithm=dqn", 6)]
    assert verdict.pairs[0].verdict == "A better"


def test_over_several_problems_normalized_scores_are_aggregated(trial):
    acrobot, dqn = {"env__name": "Acrobot-v1"}, {"agent__algorithm": {"name": "dqn"}}
    runs = [
        trial(GOOD),
        trial((-80.0, -85.0, -90.0, -82.0), 1, **acrobot),
        trial(BAD, 2, **dqn),
        trial((-200.0, -250.0, -300.0, -350.0), 3, **acrobot, **dqn),
        trial((1.0, 2.0), 4, env__name="Pendulum-v1"),
    ]
    verdict = compare(runs, by="agent.algorithm.name")
    assert verdict.pairs[0].tasks == 2
    assert verdict.pairs[0].verdict == "A better"
    # Random play scored 20 in these runs; the references are 498.94 and -81.28.
    cartpole, swing = (np.array(GOOD) - 20) / 478.94, (np.array([-80, -85, -90, -82.0]) - 20) / -101.28
    expected = np.sort(np.concatenate([cartpole, swing]))[2:6].mean()
    assert verdict.a.normalized["iqm"].point == pytest.approx(expected)
    assert "A: left out, as not all sides have it: Pendulum-v1" in verdict.notes


def test_an_unknown_setting_names_those_there_are(trial):
    with pytest.raises(UsageError, match=r"no setting 'agent\.algorithm\.gama'"):
        compare([trial(GOOD), trial(BAD, 1)], by="agent.algorithm.gama")


def test_one_side_is_nothing_to_compare(trial):
    with pytest.raises(UsageError, match="only one run"):
        compare([trial(GOOD)])
    with pytest.raises(UsageError, match=r"only one value of agent\.algorithm\.name"):
        compare([trial(GOOD, 1), trial(BAD, 2)], by="agent.algorithm.name")


def test_a_trial_without_scores_is_refused(make_trial, trial):
    empty = make_trial({"final": None, "evals": {}}, stamp=STAMPS[1])
    with pytest.raises(UsageError, match="no seed of this trial was evaluated yet"):
        compare([trial(GOOD), empty])


def test_json_of_two_keeps_its_keys(trial):
    found = compare([trial(GOOD), trial(BAD, 1)]).as_dict()
    assert {"a", "b", "probability", "verdict", "seeds_needed", "notes", "runs", "pairs"} <= set(found)
    assert found["a"]["mean"]["point"] == 487.5


def test_labels_go_on_after_the_alphabet():
    assert [label(number) for number in (0, 25, 26, 27, 52)] == ["A", "Z", "AA", "AB", "BA"]
