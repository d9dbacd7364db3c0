"""Settings that save memory: the same losses and gradients, exact resume, and nothing kept that need not be."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.distributed.fsdp import Scorer
from operant.engines.language.learning.losses import loss_settings
from operant.engines.language.learning.samples import training_samples
from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.model import load_policy, write_folder
from operant.engines.language.rollouts.types import Group
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from tests.unit.engines.language.conftest import graded, spec_of
from tests.unit.engines.language.small_models import SIZES

LORA = {"lora": {"rank": 2, "alpha": 4.0}}
KL = {"kl": "k3", "kl_coef": 0.1}
PLAIN = {"zero_variance": "keep"}
SAVING = {
    "checkpointing": ({}, {"gradient_checkpointing": True}),
    "packing": ({"packing": True}, {}),
    "both": ({"packing": True}, {"gradient_checkpointing": True}),
    "lora": ({"packing": True}, {"gradient_checkpointing": True, **LORA}),
}


def gradients(context: TrainingContext, groups: list[Group]) -> tuple[float, dict[str, torch.Tensor]]:
    """The loss of a round's only step, and its gradients, with no prompt shared so that samples stand apart."""
    learner, settings = context.learner, context.settings
    learner.scorer.share_from = None
    learner.activation_cache = None
    loss = loss_settings(settings, 0)
    answers = training_samples(groups, settings)
    (step,) = learner._steps([[sample for answer in answers for sample in answer]], loss)
    sums: defaultdict[str, float] = defaultdict(float)
    learner._gradients(step, loss, 0, sums)
    found = {name: weight.grad for name, weight in learner.optimizer.named.items() if weight.grad is not None}
    return sums["loss"], found


def moved_adapters(context: TrainingContext) -> None:
    """Adapters begin as nothing, and then have no gradient for half of their weights."""
    with torch.no_grad():
        for name, weight in context.learner.optimizer.named.items():
            if "lora_B" in name:
                weight.copy_(torch.linspace(-0.1, 0.1, weight.numel()).view(weight.shape))


@pytest.mark.parametrize("name", SAVING)
def test_loss_and_gradients_are_the_same(name: str) -> None:
    algorithm, model = SAVING[name]
    plain = {key: value for key, value in model.items() if key == "lora"}
    with build_context(spec_of({**PLAIN, "pass_tokens": 64}, **plain), Seeds(3)) as context:
        groups = graded(context.gather())
        moved_adapters(context)
        loss, expected = gradients(context, groups)
    with build_context(spec_of({**PLAIN, "pass_tokens": 64, **algorithm}, **model), Seeds(3)) as saving:
        moved_adapters(saving)
        other, found = gradients(saving, groups)
    assert other == pytest.approx(loss, abs=1e-6)
    assert set(found) == set(expected) == set(saving.learner.optimizer.named)
    assert max(float(gradient.abs().max()) for gradient in expected.values()) > 1e-3
    for key, gradient in expected.items():
        torch.testing.assert_close(found[key], gradient, atol=1e-6, rtol=1e-6)


def learn(context: TrainingContext, rounds: int) -> None:
    for _ in range(rounds):
        at = Progress(context.tracker.frames, context.tracker.updates)
        context.tracker.updates += context.learner.learn(graded(context.gather()), at, 1000).steps


@pytest.mark.parametrize(
    ("algorithm", "model"),
    [
        (SAVING["both"][0], SAVING["both"][1]),
        ({**KL, "reference_updates": 1}, LORA),
        ({}, {"dtype": "bfloat16", **LORA}),
        ({}, {"gradient_checkpointing": True, "lora": {"rank": 2, "dropout": 0.3}}),
    ],
    ids=["checkpointing and packing", "lora with a reference that moves", "lora in bfloat16", "lora with dropout"],
)
def test_a_resume_is_exact(algorithm: dict[str, Any], model: dict[str, Any], tmp_path: Path) -> None:
    spec = spec_of({**PLAIN, **algorithm}, **model)
    with build_context(spec, Seeds(3)) as context:
        context.learner.snapshot_reference()
        learn(context, 2)
        context.learner.move_reference()
        context.learner.write(tmp_path, context.tracker.state())
        learn(context, 2)
        expected = {name: weight.detach().clone() for name, weight in context.learner.optimizer.named.items()}
    torch.manual_seed(99)
    with build_context(spec, Seeds(3)) as again:
        again.learner.snapshot_reference()
        again.tracker.restore(again.learner.read(tmp_path))
        learn(again, 2)
        assert all(torch.equal(expected[name], weight) for name, weight in again.learner.optimizer.named.items())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_lora_keeps_nothing_of_the_frozen_weights(dtype: str) -> None:
    with build_context(spec_of({**PLAIN, **KL}, dtype=dtype, **LORA), Seeds(3)) as context:
        before = {id(weight) for weight in context.policy.model.parameters()}
        context.learner.snapshot_reference()
        learn(context, 1)
        reference, optimizer = context.learner.reference, context.learner.optimizer
        assert reference is not None
        assert {id(weight) for weight in reference.scorer.parameters()} == before, "the frozen weights are shared"
        adapters = {name for name, weight in context.policy.model.named_parameters() if weight.requires_grad}
        assert all("lora_" in name for name in adapters)
        assert set(reference.weights) == set(optimizer.named) == adapters
        assert {name.split("/", 1)[1] for name in optimizer.state()} == adapters
        frozen = [weight for weight in context.policy.model.parameters() if not weight.requires_grad]
        assert all(weight.grad is None for weight in frozen)
        assert {weight.dtype for weight in context.policy.model.parameters()} == {getattr(torch, dtype)}


def test_the_head_gets_no_gradient_where_it_is_frozen() -> None:
    policy = load_policy("tiny", tiny=SIZES, lora={"r": 2, "target_modules": ["q_proj"]})
    output = policy.model.get_output_embeddings()
    assert output is not None
    head = output.weight
    (batch,) = micro_batches([Sample((5, 6, 7), (8, 9, 10))], 64)
    made: list[tuple[int, ...]] = []
    zeros = torch.zeros

    def watched(*args: Any, **kwargs: Any) -> torch.Tensor:
        made.append(tuple(args[0]) if args and not isinstance(args[0], int) else tuple(args))
        return zeros(*args, **kwargs)

    scores = Scorer(policy.model)(batch, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "zeros", watched)
        scores.logprobs.sum().backward()
    assert tuple(head.shape) not in made
    assert head.grad is None


def test_the_reference_of_lora_stays_where_it_was() -> None:
    with build_context(spec_of({**PLAIN, **KL}, lora={"rank": 2, "dropout": 0.3}), Seeds(3)) as context:
        learner = context.learner
        moved_adapters(context)
        learner.snapshot_reference()
        assert learner.reference is not None
        (batch,) = micro_batches([Sample((5, 6, 7), (8, 9, 10)), Sample((5, 6), (9, 9))], 64)
        context.policy.model.eval()
        with torch.no_grad():
            expected = learner.scorer(batch, 1.0).logprobs
        context.policy.model.train()
        learn(context, 2)
        assert torch.equal(learner.reference(batch, 1.0).logprobs, expected)
        assert context.policy.model.training, "the dropout of adapters is in force again"
        assert not torch.equal(learner.scorer(batch, 1.0).logprobs, expected)


def test_checkpointing_is_in_force_in_a_pretrained_model(tmp_path: Path) -> None:
    folder = write_folder(load_policy("tiny", tiny=SIZES), tmp_path)
    calls: list[int] = []
    for checkpointing in (False, True):
        policy = load_policy(str(folder), gradient_checkpointing=checkpointing)
        seen: list[int] = []
        policy.model.get_submodule("model.layers.0.self_attn").register_forward_hook(
            lambda *_, seen=seen: seen.append(1)
        )
        (batch,) = micro_batches([Sample((5, 6, 7), (8, 9, 10))], 64)
        Scorer(policy.model)(batch, 1.0).logprobs.sum().backward()
        calls.append(len(seen))
    assert calls == [1, 2], "the layer is computed once more in the backward pass"


def test_a_pretrained_model_drops_nothing_but_in_adapters(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    tokens = {"eos_token_id": 1, "pad_token_id": 0, "bos_token_id": None}
    sizes = {"vocab_size": 258, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, **tokens}
    model = GPT2LMHeadModel(GPT2Config.from_dict(sizes))
    model.save_pretrained(tmp_path)
    load_policy("tiny", tiny=SIZES).tokenizer.save_pretrained(tmp_path)
    (batch,) = micro_batches([Sample((5, 6, 7), (8, 9, 10))], 64)
    scorer = Scorer(load_policy(str(tmp_path)).model)
    assert scorer.model.training
    assert torch.equal(scorer(batch, 1.0).logprobs, scorer(batch, 1.0).logprobs)
