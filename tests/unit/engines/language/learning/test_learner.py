"""The learner: exact first ratios, right gradients whatever the micro-batches, and steps that small weights survive."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from operant.engines.language.build import build_context
from operant.engines.language.learning.optimizer import Optimizer
from operant.engines.language.learning.samples import training_samples
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.settings.language import LmOptimizerSpec
from tests.unit.engines.language.conftest import graded, spec_of


def train_round(algorithm: dict[str, Any], **model: Any) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    """The report and the weights after a first round."""
    with build_context(spec_of(algorithm, **model), Seeds(3)) as context:
        context.learner.snapshot_reference()
        report = context.learner.learn(graded(context.gather()), Progress(), 1000)
        return report.means, {name: value.detach().clone() for name, value in context.policy.model.named_parameters()}


def test_the_ratio_of_a_first_update_is_exactly_one_and_its_divergence_zero():
    means, _ = train_round({"zero_variance": "keep"})
    assert means["policy/ratio"] == 1.0
    assert means["policy/kl"] == 0.0
    assert means["policy/clip_fraction"] == 0.0


def test_generator_and_trainer_agree():
    means, _ = train_round({"zero_variance": "keep"})
    assert abs(means["mismatch/kl"]) < 1e-8


def test_later_steps_of_a_round_have_other_ratios():
    means, _ = train_round({"zero_variance": "keep", "training_epoch": 3}, optimizer={"lr": 0.01})
    assert means["policy/kl"] > 0


def test_the_first_of_several_minibatches_compares_with_itself():
    with build_context(spec_of({"zero_variance": "keep", "minibatch_size": 8}), Seeds(3)) as context:
        steps: list[float] = []
        gradients = context.learner._gradients

        def watched(pieces: Any, loss: Any, update: int, sums: Any) -> None:
            before = sums["kl"]
            gradients(pieces, loss, update, sums)
            steps.append(sums["kl"] - before)

        context.learner._gradients = watched  # pyright: ignore[reportAttributeAccessIssue]
        context.learner.learn(graded(context.gather()), Progress(), 1000)
    assert steps[0] == 0.0
    assert steps[1] != 0.0


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "dapo", "gspo", "cispo", "rloo", "reinforce_pp"])
def test_micro_batches_do_not_change_the_step(name: str):
    keep = {"name": name, "zero_variance": "keep"}
    plain = {"name": "sgd", "lr": 0.1, "clip_grad_norm": None}
    _, whole = train_round({**keep, "pass_tokens": 4096}, optimizer=plain)
    _, parts = train_round({**keep, "pass_tokens": 40}, optimizer=plain)
    assert all(torch.allclose(whole[key], parts[key], atol=2e-6) for key in whole)


def test_groups_of_equal_rewards_are_dropped_or_worth_nothing():
    with build_context(spec_of({"zero_variance": "drop"}), Seeds(3)) as context:
        groups = graded(context.gather())
        assert [group.has_signal for group in groups] == [True, True, True, False]
        samples = training_samples(groups, context.settings)
        assert len(samples) == 12
        kept = training_samples(groups, context.settings.model_copy(update={"zero_variance": "keep"}))
    assert [sample.advantage for (sample,) in kept[:4]] == pytest.approx([-1, 1, -1, 1], abs=1e-5)
    assert [sample.advantage for (sample,) in kept[12:]] == [0, 0, 0, 0]


def test_no_step_without_a_sample():
    with build_context(spec_of({"zero_variance": "drop"}), Seeds(3)) as context:
        equal = [group for group in context.gather() if not group.has_signal]
        assert context.learner.learn(equal, Progress(), 1000).steps == 0


def test_divergence_from_the_reference_is_reported_and_zero_at_first():
    means, _ = train_round({"zero_variance": "keep", "kl": "k3", "kl_coef": 0.1})
    assert means["policy/reference_kl"] == 0.0


def test_steps_too_small_for_half_precision_add_up():
    model = torch.nn.Linear(4, 4, bias=False).to(torch.bfloat16)
    before = model.weight.detach().clone()
    optimizer = Optimizer(model, LmOptimizerSpec(lr=1e-5, clip_grad_norm=None))
    for step in range(400):
        model.weight.grad = torch.ones_like(model.weight)
        optimizer.step(step, 0.0)
    assert torch.allclose((before - model.weight).float(), torch.full((4, 4), 4e-3), atol=2e-3)


def test_a_gradient_that_is_not_finite_takes_no_step():
    model = torch.nn.Linear(2, 2, bias=False)
    before = model.weight.detach().clone()
    model.weight.grad = torch.full_like(model.weight, float("nan"))
    norm = Optimizer(model, LmOptimizerSpec(lr=0.1)).step(0, 0.0)
    assert norm != norm
    assert torch.equal(model.weight, before)


def test_the_learning_rate_rises_and_falls():
    model = torch.nn.Linear(2, 2)
    optimizer = Optimizer(model, LmOptimizerSpec(lr=1.0, warmup_updates=3, lr_end_fraction=0.5))
    rates = []
    for update, share in ((0, 0.0), (2, 0.0), (3, 0.0), (100, 0.5), (200, 1.0)):
        optimizer.step(update, share)
        rates.append(optimizer.rate)
    assert rates == [0.25, 0.75, 1.0, 0.75, 0.5]
