"""lm-evaluation-harness, for real where it is installed: by each of its routes it reads what this engine writes."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from operant.engines.language.evaluation.evaluator import EvalSet, ModelReference, open_evaluator
from operant.engines.language.policy.model import load_policy, write_folder
from operant.engines.language.policy.tiny import TinySizes
from operant.errors import UsageError
from operant.install import install_extra
from operant.run.progress import Progress
from tests.unit.engines.language.served_models import serving

INSTALLED = importlib.util.find_spec("lm_eval") is not None
needs_lm_eval = pytest.mark.skipif(not INSTALLED, reason="lm_eval is not installed: pip install lm_eval")
ROWS = [
    '{"question": "Ann has 2 apples and buys 3. How many?", "answer": "2 + 3 = <<2+3=5>>5\\n#### 5"}',
    '{"question": "A bus has 1,200 seats in all. How many?", "answer": "#### 1,200"}',
    '{"question": "Bob owes 7 and pays 7. What is left?", "answer": "7 - 7 = 0\\n#### 0"}',
]
PAIRS = [("2 + 2 =", " 4"), ("abc ", "def"), ("", "hello"), ("x" * 200, "yz")]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "gsm8k").mkdir()
    for name in ("train", "test"):
        (folder / "gsm8k" / f"{name}.jsonl").write_text("\n".join(ROWS) + "\n")
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    return str(write_folder(load_policy("tiny", tiny=TinySizes(2, 32, 2, 256)), folder))


def eval_set(data: Path, **arguments: Any) -> EvalSet:
    return EvalSet(("gsm8k",), {"data": os.fspath(data), "max_tokens": 20, **arguments})


@pytest.mark.slow
@needs_lm_eval
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["own", "hf"])
def test_the_harness_gets_the_answers_of_our_own_examination(small: str, data: Path, backend: Any) -> None:
    from operant.engines.language.evaluation.lm_eval_harness import run_lm_eval

    candidate, asked = ModelReference(small, "cpu"), eval_set(data, shots=1)
    with open_evaluator(candidate, asked) as evaluator:
        (result,) = [list(evaluator.evaluate(task, Progress()))[-1] for task in evaluator.tasks]
    scores = run_lm_eval(candidate, asked, backend)["gsm8k"]
    assert [(one.item, one.answer) for one in scores] == [(e.item, e.turns[1].text) for e in result.episodes]
    assert [one.right["flexible-extract"] for one in scores] == [episode.score for episode in result.episodes]


@pytest.mark.slow
@needs_lm_eval
@pytest.mark.filterwarnings("ignore")
def test_a_right_answer_is_scored_right(small: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from operant.engines.language.evaluation import lm_eval_model as harness_model
    from operant.engines.language.evaluation.lm_eval_harness import run_lm_eval

    said = [" 2 + 3 = 5\n#### 5", " so it is $1,200.", " nothing"]
    monkeypatch.setattr(harness_model.OperantModel, "generate_until", lambda *_: said)
    scores = run_lm_eval(ModelReference(small, "cpu"), eval_set(data), "own")["gsm8k"]
    assert [one.right for one in scores] == [
        {"strict-match": 1.0, "flexible-extract": 1.0},
        {"strict-match": 0.0, "flexible-extract": 1.0},
        {"strict-match": 0.0, "flexible-extract": 0.0},
    ]


@pytest.mark.slow
@needs_lm_eval
@pytest.mark.filterwarnings("ignore")
def test_likelihoods_are_those_of_the_harness_own_models(small: str) -> None:
    from lm_eval.models.huggingface import HFLM  # pyright: ignore[reportMissingImports]
    from lm_eval.models.openai_completions import LocalCompletionsAPI  # pyright: ignore[reportMissingImports]

    from operant.engines.language.evaluation.lm_eval_model import OperantModel
    from operant.engines.language.generation.torch_generator import TorchGenerator

    policy = load_policy(small)
    pairs = [SimpleNamespace(args=pair) for pair in PAIRS]
    texts = [SimpleNamespace(args=(text,)) for text in ("hello there", "long " * 100)]
    own = OperantModel(policy, TorchGenerator(policy))
    theirs = HFLM(pretrained=small, device="cpu", dtype="float32", batch_size=2)
    found, expected = own.loglikelihood(pairs), theirs.loglikelihood(pairs)
    assert [value for value, _ in found] == pytest.approx([value for value, _ in expected], abs=1e-3)
    assert [greedy for _, greedy in found] == [greedy for _, greedy in expected]
    assert own.loglikelihood_rolling(texts) == pytest.approx(theirs.loglikelihood_rolling(texts), rel=1e-5)
    with serving(policy) as server:
        api = LocalCompletionsAPI(
            base_url=f"{server.url}/completions",
            model="small",
            tokenizer=small,
            tokenizer_backend="huggingface",
            max_length=256,
        )
        told = api.loglikelihood(pairs)
        wishes = {"until": ["\n\n"], "max_gen_toks": 9, "temperature": 0}
        requests = [
            SimpleNamespace(args=(text, dict(wishes)), arguments=(text, dict(wishes))) for text in ("Q: 1", "Q: 22")
        ]
        assert api.generate_until(requests) == own.generate_until(requests)
    assert [value for value, _ in told] == pytest.approx([value for value, _ in expected], abs=1e-3)
    assert [greedy for _, greedy in told] == [greedy for _, greedy in expected]


@pytest.mark.skipif(INSTALLED, reason="lm_eval is installed")
def test_without_the_package_one_clear_line_says_what_to_install(small: str, data: Path) -> None:
    from operant.engines.language.evaluation.lm_eval_harness import run_lm_eval

    with pytest.raises(UsageError, match="--harness lm_eval needs the package lm_eval") as refusal:
        run_lm_eval(ModelReference(small, "cpu"), eval_set(data), "own")
    assert install_extra("harness") in str(refusal.value)


@pytest.mark.slow
@needs_lm_eval
def test_a_task_that_the_harness_cannot_judge_offline_is_refused(small: str) -> None:
    from operant.engines.language.evaluation.lm_eval_harness import run_lm_eval

    with pytest.raises(UsageError, match="not for mbpp"):
        run_lm_eval(ModelReference(small, "cpu"), EvalSet(("mbpp",)), "own")
