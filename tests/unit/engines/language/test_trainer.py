"""A session from start to end in this process, and what its parts record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from operant.engines import language
from operant.engines.language.build import TrainingContext
from operant.engines.language.cost import arithmetic, updates
from operant.engines.language.evaluation.evaluator import format_episode
from operant.engines.language.rollouts.types import as_episodes
from operant.engines.language.tracker import Tracker
from operant.envs.text.letters import Copy
from operant.envs.text.task import Problem, Verdict, failed
from operant.run.episode import Episode
from operant.run.progress import Progress
from operant.run.run import Run
from operant.spec.schema import Spec
from tests.unit.engines.language.conftest import spec_of


def trained(path: Path, spec: Spec) -> Run:
    run = Run.create(path, name="grpo", spec=spec.model_dump(mode="json"), seed=1, session=0, threads=1)
    language.train(run)
    return run


def test_a_session_records_rows_and_answers(tmp_path: Path):
    spec = spec_of({"warmup": {"updates": 3}})
    meta = {"log_frequency": 100, "eval_frequency": 500, "save_frequency": 500, "eval_episodes": 5, "final_episodes": 7}
    spec = Spec.model_validate({**spec.model_dump(mode="json"), "meta": meta})
    run = trained(tmp_path / "run", spec)
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert {"eval/score", "warmup/first_loss"} <= rows[0].keys()
    assert {"train/return", "mismatch/kl", "rollout/zero_variance", "perf/tokens_per_second"} <= rows[1].keys()
    assert rows[-1]["final/episodes"] == 7
    episodes = [json.loads(line) for line in (run.path / "episodes.jsonl").read_text().splitlines()]
    first = episodes[0]
    assert first["item"].startswith("copy/eval/")
    assert [turn["role"] for turn in first["turns"]] == ["user", "assistant"]
    assert len([row for row in episodes if row["split"] == "train"]) == rows[-1]["frames"]


def test_an_evaluation_without_a_verdict_has_no_score_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = spec_of().model_dump(mode="json")
    data["env"]["max_frame"] = 16
    data["meta"] |= {"eval_frequency": 8, "eval_episodes": 3, "final_episodes": 3}
    verify = Copy.verify

    def broken_for_evaluation(task: Copy, problem: Problem, completion: str) -> Verdict:
        return failed("the verifier broke") if "/eval/" in problem.id else verify(task, problem, completion)

    monkeypatch.setattr(Copy, "verify", broken_for_evaluation)
    run = trained(tmp_path / "run", Spec.model_validate(data))
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert not any("eval/score" in row or "final/score" in row for row in rows)
    assert rows[0]["eval/without_score"] == rows[-1]["final/without_score"] == 3
    assert not (run.path / "anchors.json").exists()


def test_episodes_say_which_problem_and_what_was_said(context: TrainingContext):
    group = context.gather()[0]
    episode = as_episodes(group, "train", None, Progress())[0]
    assert episode.item == group.problem.id
    assert Episode.from_dict(episode.as_dict()) == episode
    assert group.problem.prompt in format_episode(episode)
    assert as_episodes(group, "train", None, Progress(), words=False)[0].turns == ()


def test_a_tracker_goes_on_where_it_was(context: TrainingContext):
    context.gather()
    other = Tracker()
    other.restore(json.loads(json.dumps(context.tracker.state())))
    assert other.flush() == context.tracker.flush()
    assert other.frames == context.tracker.frames == 16


def test_the_arithmetic_of_batches_in_words():
    spec = spec_of({"minibatch_size": 8, "training_epoch": 2})
    settings = spec.agent.algorithm
    lines = arithmetic(settings, spec)  # pyright: ignore[reportArgumentType]
    assert lines[0] == "a round: 4 prompts x 4 completions = 16 completions (frames)"
    assert "2 x 2 = 4 gradient steps of 8 completions" in lines[1]
    assert updates(settings, 1000) == 63 * 4  # pyright: ignore[reportArgumentType]


def test_the_estimate_is_measured():
    estimate = language.estimate(spec_of())
    assert estimate.frames_per_second > 10
    assert estimate.parameters > 1000
    assert estimate.disk_bytes > estimate.parameters * 4


def test_the_estimate_of_a_spec_with_a_kl_term_is_measured():
    assert language.estimate(spec_of({"kl": "k3", "kl_coef": 0.01})).frames_per_second > 10
