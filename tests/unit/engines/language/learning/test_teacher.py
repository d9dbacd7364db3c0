"""Distillation: a policy comes closer to its teacher, and a teacher with other tokens is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from operant.engines.language.build import build_context
from operant.engines.language.compatibility import check_compatibility
from operant.engines.language.policy.model import load_policy, write_folder
from operant.engines.language.policy.tiny import TinySizes
from operant.errors import UsageError
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


def spec_with(teacher: Path, **changes: object) -> Spec:
    algorithm = {
        "name": "grpo",
        "group_size": 4,
        "batch_size": 64,
        "loss": "reinforce",
        "zero_variance": "keep",
        "teacher": str(teacher),
        **changes,
    }
    model = {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2, "context": 32}, "optimizer": {"lr": 1e-2}}
    text = {"arguments": {"style": "bare", "letters": 3}, "workers": 1}
    env = {"name": "copy", "max_frame": 10_000, "text": text}
    return Spec.model_validate({"env": env, "agent": {"algorithm": algorithm, "model": model}})


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    """A model of the same tokens that hardly ever says one of the upper half, whatever was said before."""
    policy = load_policy("tiny", tiny=TinySizes(1, 16, 2, 32), seed=5)
    model: Any = policy.model
    for name, weight in model.named_parameters():
        weight.data.fill_(0.0 if "proj" in name else 1.0)
    liked = torch.where(torch.arange(258) < 129, 3.0, -3.0)
    model.config.tie_word_embeddings = False
    model.lm_head.weight = nn.Parameter((liked / 16)[:, None].repeat(1, 16))
    return write_folder(policy, tmp_path / "teacher")


@pytest.mark.parametrize("kind", ["k2", "k3"])
def test_the_policy_comes_closer_to_its_teacher(teacher: Path, kind: str) -> None:
    with build_context(spec_with(teacher, teacher_kl=kind), Seeds(0)) as context:
        distances = []
        for _ in range(12):
            report = context.learner.learn(
                context.gather(), Progress(context.tracker.frames, context.tracker.updates), 10_000
            )
            distances.append(report.means["policy/teacher_kl"])
            context.tracker.updates += report.steps
        assert np.mean(distances[-4:]) < 0.5 * np.mean(distances[:4])


def test_a_teacher_with_other_tokens_is_refused(teacher: Path) -> None:
    file = teacher / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    numbers = tokenizer["model"]["vocab"]
    numbers["a"], numbers["b"] = numbers["b"], numbers["a"]
    file.write_text(json.dumps(tokenizer))
    with pytest.raises(
        UsageError, match="2 of the policy's 258 tokens are not in it under the same number, such as 'a'"
    ):
        check_compatibility(spec_with(teacher))


def test_a_teacher_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no model"):
        check_compatibility(spec_with(tmp_path / "nowhere"))
