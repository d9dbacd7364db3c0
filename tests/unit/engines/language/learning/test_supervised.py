"""SFT, distillation and a reference that moves: what a checkpoint gives back, and what is learnt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.compatibility import check_compatibility
from operant.engines.language.learning.sft import imitated, next_examples
from operant.engines.language.learning.teacher_prompts import with_teacher_prompts
from operant.envs.text.examples import ExampleSampler, read_examples
from operant.errors import UsageError
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

WORDS = ("abc", "bca", "cab", "acb", "bac", "cba")


def spec_of(algorithm: dict[str, Any], **model: Any) -> Spec:
    sizes = {"layers": 1, "width": 32, "heads": 2, "context": 64}
    own = {"source": "tiny", "tiny": sizes, "optimizer": {"lr": 1e-2}, **model}
    text = {"arguments": {"style": "bare", "letters": 3}, "workers": 1}
    env = {"name": "copy", "max_frame": 10_000, "text": text}
    return Spec.model_validate({"env": env, "agent": {"algorithm": algorithm, "model": own}})


@pytest.fixture
def examples(tmp_path: Path) -> str:
    path = tmp_path / "examples.jsonl"
    rows = [{"prompt": f"{word}=", "completion": word, "source": word[0]} for word in WORDS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def one_round(context: TrainingContext) -> dict[str, float]:
    """What the trainer does in a round."""
    tracker = context.tracker
    at = Progress(tracker.frames, tracker.updates)
    before = tracker.updates
    if context.spec.agent.algorithm.name == "sft":
        report = context.learner.imitate(next_examples(context), at, 10_000)
        tracker.frames += context.settings.batch_size
        tracker.position += context.settings.batch_size
    else:
        groups = with_teacher_prompts(context, context.gather())
        report = context.learner.learn(groups, at, 10_000, imitated(context, [group.problem for group in groups]))
    tracker.updates += report.steps
    every = context.settings.reference_updates
    if every is not None and tracker.updates // every > before // every:
        context.learner.move_reference()
    return report.means


def weights(context: TrainingContext) -> list[torch.Tensor]:
    reference = context.learner.reference
    kept = list(reference.weights.values()) if reference is not None else []
    return [weight.detach().clone() for weight in (*context.policy.model.parameters(), *kept)]


GROUPS = {"group_size": 4, "batch_size": 16}
SELF = {"teacher": "self", "teacher_prompt": "answer", "teacher_top_k": 8}
CASES = {
    "sft": {"name": "sft", "batch_size": 4},
    "sft of a file": {"name": "sft", "batch_size": 4, "sft_data": {}},
    "gkd": {"name": "gkd", "batch_size": 16, **SELF},
    "moving": {"name": "grpo", **GROUPS, "kl": "k3", "kl_coef": 0.1, "reference_updates": 2},
    "beside": {"name": "grpo", **GROUPS, "sft_coef": 0.5, "sft_data": {}, "sft_batch_size": 3},
}


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_goes_on_exactly(name: str, examples: str, tmp_path: Path) -> None:
    algorithm = dict(CASES[name])
    if "sft_data" in algorithm:
        algorithm["sft_data"] = {"path": examples}
    spec, folder = spec_of(algorithm), tmp_path / "checkpoint"
    folder.mkdir()
    with build_context(spec, Seeds(3)) as context:
        context.learner.snapshot_reference()
        for _ in range(3):
            one_round(context)
        context.learner.write(folder, context.tracker.state())
        for _ in range(2):
            one_round(context)
        expected = weights(context)
    with build_context(spec, Seeds(3)) as context:
        context.learner.snapshot_reference()
        context.tracker.restore(context.learner.read(folder))
        context.publish()
        for _ in range(2):
            one_round(context)
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(weights(context), expected, strict=True))


def test_sft_learns_its_file(examples: str) -> None:
    spec = spec_of({"name": "sft", "batch_size": 6, "sft_data": {"path": examples, "end_of_text": False}})
    with build_context(spec, Seeds(0)) as context:
        means = [one_round(context) for _ in range(60)]
    assert means[-1]["loss/sft"] < 0.5 * means[0]["loss/sft"]
    assert means[-1]["sft/accuracy"] > means[0]["sft/accuracy"] + 0.1


def test_the_loss_of_sft_is_the_mean_over_tokens(examples: str) -> None:
    with build_context(spec_of({"name": "sft", "batch_size": 5, "sft_data": {"path": examples}}), Seeds(0)) as context:
        samples = next_examples(context)
        model, logprobs = context.policy.model, []
        for sample in samples:
            with torch.no_grad():
                logits = model(torch.tensor([sample.prompt + sample.completion])).logits[0].double()
            logs = torch.log_softmax(logits, -1)[len(sample.prompt) - 1 : -1]
            logprobs += logs.gather(1, torch.tensor(sample.completion)[:, None])[:, 0].tolist()
        assert one_round(context)["loss/sft"] == pytest.approx(-np.mean(logprobs), rel=1e-5)


def test_examples_come_in_another_order_with_every_pass(examples: str) -> None:
    sampler = ExampleSampler(read_examples(examples), 5)
    passes = [sampler.take(start, 6) for start in (0, 6, 12)]
    assert all({each.completion for each in one} == set(WORDS) for one in passes)
    assert passes[0] != passes[1] != passes[2]
    assert sampler.take(3, 6) == [*passes[0][3:], *passes[1][:3]]
    assert {each.completion[0] for each in read_examples(examples, subset=["a", "b"])} == {"a", "b"}


def test_bad_files_are_one_line(tmp_path: Path) -> None:
    missing = spec_of({"name": "sft", "sft_data": {"path": str(tmp_path / "none.jsonl")}})
    with pytest.raises(UsageError, match="there is no file"):
        check_compatibility(missing)
    path = tmp_path / "bad.jsonl"
    path.write_text('{"prompt": "a"}\n')
    with pytest.raises(UsageError, match="this line has no text 'completion'"):
        read_examples(str(path))
    with pytest.raises(UsageError, match="no example is of x"):
        read_examples(str(path), subset=["x"])
