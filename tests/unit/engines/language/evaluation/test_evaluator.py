"""Examinations: the problems, prompts and arguments of training, each answer recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.engines.language.evaluation.evaluator import (
    EvalSet,
    ModelReference,
    TaskResult,
    make_tasks,
    not_taken,
    open_evaluator,
)
from operant.engines.language.policy.model import load_policy, write_folder
from operant.engines.language.policy.tiny import TinySizes
from operant.engines.language.rollouts.single_turn import render
from operant.errors import UsageError
from operant.run.progress import Progress
from operant.spec.load import load
from operant.spec.schema import Spec
from tests.unit.engines.language.served_models import serving


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    return str(write_folder(load_policy("tiny", tiny=TinySizes(2, 32, 2, 64)), folder))


def spec_of_a_run() -> Spec:
    return load("grpo_tiny").spec


def evaluate(candidate: ModelReference, eval_set: EvalSet) -> list[TaskResult]:
    with open_evaluator(candidate, eval_set) as evaluator:
        return [list(evaluator.evaluate(task, Progress(5)))[-1] for task in evaluator.tasks]


def test_a_run_is_asked_as_it_was_trained(small: str) -> None:
    spec = spec_of_a_run()
    eval_set = EvalSet(("copy",), limit=6, seed=3)
    (task,) = make_tasks(eval_set, spec)
    assert task.recipe == ("copy", {"style": "bare", "letters": 5}, None)
    (result,) = evaluate(ModelReference(small, "cpu", spec=spec), eval_set)
    assert len(result.episodes) == 6
    assert all(episode.turns[0].text.startswith("copy:") for episode in result.episodes)
    assert {episode.at.frames for episode in result.episodes} == {5}
    policy = load_policy(small)
    lengths = [len(render(problem, policy).tokens) for problem in task.problems("eval")]
    assert {episode.turns[0].tokens for episode in result.episodes} <= set(lengths)


def test_samples_differ_and_the_greedy_answer_is_always_the_same(small: str) -> None:
    candidate = ModelReference(small, "cpu", spec=spec_of_a_run())
    (several,) = evaluate(candidate, EvalSet(("copy",), samples=4, limit=3))
    assert len({(episode.item, episode.turns[1].text) for episode in several.episodes}) == 12
    first, second = (evaluate(candidate, EvalSet(("copy",), limit=3))[0] for _ in range(2))
    assert [one.turns for one in first.episodes] == [one.turns for one in second.episodes]
    assert "unparsed" in first.episodes[0].parts
    assert first.episodes[0].version == 0


def test_a_server_may_write_the_answers(small: str) -> None:
    eval_set, spec = EvalSet(("copy",), samples=2, limit=4), spec_of_a_run()
    (near,) = evaluate(ModelReference(small, "cpu", spec=spec), eval_set)
    with serving(load_policy(small)) as server:
        (far,) = evaluate(ModelReference(small, "cpu", spec=spec, url=server.url), eval_set)
    assert [one.turns for one in far.episodes] == [one.turns for one in near.episodes]


def test_arguments_go_to_those_who_take_them() -> None:
    tasks = make_tasks(EvalSet(("copy", "sort"), {"style": "bare", "copy.letters": 3}))
    assert [task.recipe[1] for task in tasks] == [{"style": "bare", "letters": 3}, {"style": "bare"}]


def test_a_task_that_does_not_take_an_argument_of_all_is_named() -> None:
    eval_set = EvalSet(("mbpp", "gsm8k"), {"shots": 2, "gsm8k.max_tokens": 9})
    assert not_taken(eval_set) == ["shots has no effect on mbpp, which does not take it"]


@pytest.mark.parametrize("key", ["shots", "gsm8k.shots"])
def test_an_argument_that_none_takes_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="takes an argument 'shots'"):
        make_tasks(EvalSet(("copy", "sort"), {key: 3}))


def test_problems_that_do_not_fit_are_refused_before_anything_is_written(small: str) -> None:
    candidate = ModelReference(small, "cpu")
    with (
        pytest.raises(UsageError, match="2 of 2 problems do not fit the model's context of 64 tokens: copy/eval/"),
        open_evaluator(candidate, EvalSet(("copy",), limit=2)),
    ):
        pass


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"no config\.json"),
        open_evaluator(ModelReference(str(tmp_path)), EvalSet(("copy",))),
    ):
        pass


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("wide")
    return str(write_folder(load_policy("tiny", tiny=TinySizes(1, 16, 1, 2048)), folder))


def test_a_dialogue_whose_opening_fills_the_context_is_refused_in_one_line(small: str) -> None:
    with pytest.raises(UsageError, match=r"hackmatrix_game/eval/\d+ opens with \d+ tokens, .* context of 64"):
        evaluate(ModelReference(small, "cpu"), EvalSet(("hackmatrix_game",), limit=1))


def test_answers_are_recorded_with_the_seed_of_the_game_that_was_played(wide: str) -> None:
    arguments = {"hackmatrix_game.style": "bare", "hackmatrix_game.turns": 2, "hackmatrix_game.max_tokens": 2}
    eval_set = EvalSet(("hackmatrix_game",), arguments=arguments, limit=3, seed=7)
    (task,) = make_tasks(eval_set, None)
    seeds = {problem.id: problem.answer["seed"] for problem in task.problems("eval")}
    (result,) = evaluate(ModelReference(wide, "cpu"), eval_set)
    played = {episode.item: episode.seed for episode in result.episodes}
    assert len(played) == 3
    assert played == {item: seeds[str(item)] for item in played}
