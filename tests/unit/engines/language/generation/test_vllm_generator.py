"""vLLM as the generator: what it is asked, how its answers are read, and slowly, the real engine beside the trainer."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from operant.engines.language.generation import vllm_generator
from operant.engines.language.generation.build import build_generator
from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.stop_strings import StopStrings
from operant.engines.language.generation.vllm_generator import VllmGenerator, completion, request, sampling_mask
from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.policy.sampling_mask import SamplingMask
from operant.engines.language.policy.weights import plain_weights
from operant.errors import OperantError, RunError, UsageError
from operant.spec.settings.language import ModelSpec, VllmSpec
from tests.unit.engines.language.conftest import spec_of
from tests.unit.engines.language.small_models import SIZES, random_policy

ROOT = Path(__file__).parents[5]
EOS = 1


def output(tokens: list[int], finish: str) -> Any:
    """One of vLLM 0.19's outputs, as far as it is read: each token's dictionary has the token itself."""
    logprobs = [{token: SimpleNamespace(logprob=-0.5 * at, rank=1)} for at, token in enumerate(tokens)]
    return SimpleNamespace(token_ids=tokens, logprobs=logprobs, finish_reason=finish, stop_reason=None)


def words(policy: Policy, text: str) -> list[int]:
    return policy.tokenizer.encode(text, add_special_tokens=False)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return random_policy("tiny")


def test_a_request_leaves_the_temperature_to_the_model():
    prompt = Prompt((5, 6), 7, ("end",))
    asked = request(prompt, Sampling(2, 0.7, 0.9, 20, seed=3), 1, (EOS, 4))
    assert asked["temperature"] == 1.0
    assert (asked["top_p"], asked["top_k"], asked["max_tokens"]) == (0.9, 20, 7)
    assert (asked["stop"], asked["stop_token_ids"]) == (["end"], [EOS, 4])
    assert request(prompt, Sampling(temperature=0.0), 0, (EOS,))["temperature"] == 0.0


def test_seeds_differ_by_prompt_and_number_and_fit_into_vllm():
    sampling = Sampling(2, seed=3)
    asked = [request(Prompt(tokens, 4), sampling, index, (EOS,)) for tokens in ((5,), (6,)) for index in (0, 1)]
    assert len({each["seed"] for each in asked}) == 4
    assert all(0 <= each["seed"] < 2**63 for each in asked)
    assert asked[0] == request(Prompt((5,), 4), sampling, 0, (EOS,))


def test_the_end_token_is_part_of_a_completion_and_not_of_its_text(policy: Policy):
    tokens = [*words(policy, "ab"), EOS]
    made = completion(output(tokens, "stop"), Prompt((5,), 9), StopStrings(policy.tokenizer), (EOS,), 3)
    assert made.tokens == tuple(tokens)
    assert made.logprobs == (0.0, -0.5, -1.0)
    assert (made.text, made.finish, made.version) == ("ab", "stop", 3)


def test_a_completion_ends_with_the_token_that_completes_the_stop_string(policy: Policy):
    tokens = words(policy, "ab\n\ncd")
    made = completion(output(tokens, "stop"), Prompt((5,), 9, ("\n\n",)), StopStrings(policy.tokenizer), (EOS,), 0)
    assert made.tokens == tuple(words(policy, "ab\n\n"))
    assert len(made.logprobs) == 4
    assert (made.text, made.finish) == ("ab", "stop")


@pytest.mark.parametrize(("said", "finish"), [("length", "length"), ("abort", "abort"), ("error", "abort")])
def test_other_ends_of_completions(policy: Policy, said: str, finish: str):
    made = completion(output(words(policy, "ab"), said), Prompt((5,), 2), StopStrings(policy.tokenizer), (EOS,), 0)
    assert made.finish == finish


def test_weights_are_named_as_in_a_folder_and_hold_the_adapter():
    plain = load_policy("tiny", tiny=SIZES)
    pytest.importorskip("peft")
    adapted = load_policy("tiny", tiny=SIZES, lora={"r": 4, "target_modules": "all-linear", "init_lora_weights": False})
    merged = dict(adapted.model.merge_and_unload().named_parameters())  # pyright: ignore[reportCallIssue]
    adapted = load_policy("tiny", tiny=SIZES, lora={"r": 4, "target_modules": "all-linear", "init_lora_weights": False})
    found = dict(plain_weights(adapted.model))
    assert list(found) == [name for name, _ in plain.model.named_parameters()]
    for name, value in found.items():
        torch.testing.assert_close(value, merged[name])


class FakeEngine:
    """Answers the probe with a model's own log-probabilities, moved by `error`."""

    def __init__(self, policy: Policy, error: float) -> None:
        self.policy, self.error = policy, error
        self.calls: list[str] = []

    def collective_rpc(self, method: str, kwargs: dict[str, Any]) -> None:
        self.calls.append(f"{method} {len(kwargs['weights_iterator'])}")

    def apply_model(self, change: Any) -> None:
        """There is no model here that could be changed."""

    def reset_prefix_cache(self) -> None:
        self.calls.append("reset")

    def probed(self, tokens: list[int]) -> Any:
        truth = vllm_generator.trainer_logprobs(self.policy, tokens) + self.error
        rows = [{token: SimpleNamespace(logprob=float(value))} for token, value in zip(tokens[1:], truth, strict=True)]
        return SimpleNamespace(prompt_logprobs=[None, *rows])


def beside(policy: Policy, error: float, monkeypatch: pytest.MonkeyPatch) -> VllmGenerator:
    """A generator whose engine has placeholder weights at first, and after a load is off by `error`."""
    engine = FakeEngine(policy, 0.1)
    monkeypatch.setattr(vllm_generator, "require_vllm", lambda: None)
    monkeypatch.setattr(vllm_generator, "start_engine", lambda *_: engine)

    def ask(_: VllmGenerator, prompts: list[list[int]], __: Any) -> list[Any]:
        engine.error = error if engine.calls else engine.error
        return [engine.probed(tokens) for tokens in prompts]

    monkeypatch.setattr(VllmGenerator, "_ask", ask)
    return VllmGenerator(policy, VllmSpec(), 4)


def test_a_load_is_checked_and_forgets_cached_prompts(policy: Policy, monkeypatch: pytest.MonkeyPatch):
    made = beside(policy, 1e-5, monkeypatch)
    assert made.engine.calls == [f"reload_weights {len(dict(plain_weights(policy.model)))}", "reset"]
    made.load({}, 5)
    assert made.version == 5


@pytest.mark.parametrize("error", [0.1, 0.001])
def test_weights_that_do_not_arrive_end_the_run(policy: Policy, error: float, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(RunError, match="did not arrive in vLLM"):
        beside(policy, error, monkeypatch)


def test_a_model_that_vllm_refuses_is_told_in_one_line(policy: Policy, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any) -> Any:
        raise RuntimeError("Unsupported CPU attention configuration: head_dim=16 isa=2")

    monkeypatch.setattr(vllm_generator, "require_vllm", lambda: None)
    monkeypatch.setattr(vllm_generator, "start_engine", refuse)
    with pytest.raises(RunError, match="vLLM does not run this model: Unsupported CPU attention"):
        VllmGenerator(policy, VllmSpec(), 4)


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed here")
def test_without_vllm_one_line_says_how_to_get_it(policy: Policy):
    with pytest.raises(UsageError, match="needs the package vllm") as refused:
        build_generator(policy, ModelSpec(generator="vllm"))
    assert "vllm" in (refused.value.remedy or "")


def test_the_tokens_that_are_told_make_the_sampling_mask():
    found = {4: SimpleNamespace(logprob=math.log(0.75)), 9: SimpleNamespace(logprob=math.log(0.25))}
    mask = sampling_mask([{**found, 7: SimpleNamespace(logprob=-math.inf)}], 16)
    assert mask == SamplingMask.of_tokens([[4, 9]], 16)
    with pytest.raises(RunError, match=r"add up to 0\.75"):
        sampling_mask([{4: found[4]}], 16)


@pytest.mark.parametrize("cut", [{"top_p": 0.9}, {"min_p": 0.1}, {"top_k": 5000}])
def test_truncation_that_vllm_cannot_tell_is_refused_by_the_spec(cut: dict[str, Any]):
    with pytest.raises(ValidationError, match=r"agent\.algorithm\.top_k"):
        spec_of(cut, generator="vllm")
    spec_of({"top_p": 0.9, "top_k": 20}, generator="vllm")


def test_a_model_that_cannot_be_scaled_is_refused():
    with pytest.raises(OperantError, match="temperature 1"):
        vllm_generator.scale_logits(torch.nn.Linear(1, 1), 2.0)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
def test_the_real_engine(tmp_path: Path):
    """In a process of its own, since vLLM changes the one it runs in."""
    script = Path(__file__).with_name("vllm_trial.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "VLLM_CPU_KVCACHE_SPACE": "1"}
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, env=environment, timeout=1400)
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["greedy_equal"]
    assert seen["greedy_after"]
    assert seen["repeatable"]
    assert seen["stops"] == ["stop", "stop"]
    assert max(seen["logprob_error"].values()) < 1e-4
    assert seen["stale_gap"] > 100 * seen["fresh_gap"]
    assert max(seen["mismatch"]) < 1e-6
    assert seen["stale_mismatch"] > 1e-2
    assert seen["updates"] >= 3
    assert seen["second_gap"] < 1e-5
    assert seen["ratio"] == 1.0
    assert abs(seen["cut_mismatch"]) < 1e-6
    assert len(seen["probes"]) == 2
