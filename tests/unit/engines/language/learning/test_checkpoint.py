"""Checkpoints: plain Hugging Face folders that also resume exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.learning import checkpoint as checkpoint_files
from operant.errors import RunError
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from tests.unit.engines.language.conftest import graded, spec_of

LORA = {"lora": {"rank": 2, "alpha": 4.0}}


def learn(context: TrainingContext, rounds: int) -> None:
    for _ in range(rounds):
        report = context.learner.learn(
            graded(context.gather()), Progress(context.tracker.frames, context.tracker.updates), 1000
        )
        context.tracker.updates += report.steps


@pytest.mark.parametrize("model", [{}, {"dtype": "bfloat16"}, LORA], ids=["float32", "bfloat16", "lora"])
def test_going_on_from_a_checkpoint_is_going_on(model: dict, tmp_path: Path):
    keep = {"zero_variance": "keep"}
    with build_context(spec_of(keep, **model), Seeds(3)) as context:
        learn(context, 2)
        checkpoint_files.write(tmp_path, context.policy, context.learner.optimizer, context.tracker.state())
        learn(context, 2)
        expected = {name: value.detach().clone() for name, value in context.learner.optimizer.named.items()}
    with build_context(spec_of(keep, **model), Seeds(3)) as again:
        again.tracker.restore(checkpoint_files.read(tmp_path, again.policy, again.learner.optimizer))
        learn(again, 2)
        assert all(torch.equal(expected[name], value) for name, value in again.learner.optimizer.named.items())


@pytest.mark.parametrize("model", [{}, LORA], ids=["whole", "lora"])
def test_the_folder_loads_without_renaming(model: dict, tmp_path: Path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with build_context(spec_of({"zero_variance": "keep"}, **model), Seeds(3)) as context:
        learn(context, 2)
        checkpoint_files.write(tmp_path, context.policy, context.learner.optimizer, {})
        tokens = torch.tensor([[10, 20, 30]])
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert torch.allclose(loaded(tokens).logits, context.policy.model(tokens).logits, atol=1e-5)
    assert AutoTokenizer.from_pretrained(tmp_path).decode([1]) == "<eos>"


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path):
    with build_context(spec_of(), Seeds(3)) as context:
        checkpoint_files.write(tmp_path, context.policy, context.learner.optimizer, {})
    sizes = {"layers": 1, "width": 64, "heads": 2, "context": 48}
    with build_context(spec_of(tiny=sizes), Seeds(3)) as other, pytest.raises(RunError, match="does not fit the model"):
        checkpoint_files.read(tmp_path, other.policy, other.learner.optimizer)


def test_facts_keep_their_order(tmp_path: Path):
    with build_context(spec_of(), Seeds(3)) as context:
        checkpoint_files.write(tmp_path, context.policy, context.learner.optimizer, {"b": 1, "a": 2})
    assert list(json.loads((tmp_path / checkpoint_files.FACTS_FILE).read_text())) == ["b", "a"]
