"""Checkpoints: plain Hugging Face folders that also resume exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from operant.engines.language.build import Lab, build_lab
from operant.engines.language.learning import checkpoint as codec
from operant.errors import RunError
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from tests.unit.engines.language.conftest import graded, spec_of

LORA = {"lora": {"rank": 2, "alpha": 4.0}}


def learn(lab: Lab, rounds: int) -> None:
    for _ in range(rounds):
        report = lab.learner.learn(graded(lab.gather()), Progress(lab.tracker.frames, lab.tracker.updates), 1000)
        lab.tracker.updates += report.steps


@pytest.mark.parametrize("model", [{}, {"dtype": "bfloat16"}, LORA], ids=["float32", "bfloat16", "lora"])
def test_going_on_from_a_checkpoint_is_going_on(model: dict, tmp_path: Path):
    keep = {"zero_variance": "keep"}
    with build_lab(spec_of(keep, **model), Seeds(3)) as lab:
        learn(lab, 2)
        codec.write(tmp_path, lab.policy, lab.learner.optimiser, lab.tracker.state())
        learn(lab, 2)
        expected = {name: value.detach().clone() for name, value in lab.learner.optimiser.named.items()}
    with build_lab(spec_of(keep, **model), Seeds(3)) as again:
        again.tracker.restore(codec.read(tmp_path, again.policy, again.learner.optimiser))
        learn(again, 2)
        assert all(torch.equal(expected[name], value) for name, value in again.learner.optimiser.named.items())


@pytest.mark.parametrize("model", [{}, LORA], ids=["whole", "lora"])
def test_the_folder_loads_without_renaming(model: dict, tmp_path: Path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with build_lab(spec_of({"zero_variance": "keep"}, **model), Seeds(3)) as lab:
        learn(lab, 2)
        codec.write(tmp_path, lab.policy, lab.learner.optimiser, {})
        tokens = torch.tensor([[10, 20, 30]])
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert torch.allclose(loaded(tokens).logits, lab.policy.model(tokens).logits, atol=1e-5)
    assert AutoTokenizer.from_pretrained(tmp_path).decode([1]) == "<eos>"


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path):
    with build_lab(spec_of(), Seeds(3)) as lab:
        codec.write(tmp_path, lab.policy, lab.learner.optimiser, {})
    sizes = {"layers": 1, "width": 64, "heads": 2, "context": 48}
    with build_lab(spec_of(tiny=sizes), Seeds(3)) as other, pytest.raises(RunError, match="does not fit the model"):
        codec.read(tmp_path, other.policy, other.learner.optimiser)


def test_facts_keep_their_order(tmp_path: Path):
    with build_lab(spec_of(), Seeds(3)) as lab:
        codec.write(tmp_path, lab.policy, lab.learner.optimiser, {"b": 1, "a": 2})
    assert list(json.loads((tmp_path / codec.FACTS_FILE).read_text())) == ["b", "a"]
