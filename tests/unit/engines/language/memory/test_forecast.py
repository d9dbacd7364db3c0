"""Memory by part, held to what a small run really holds; what cannot fit is refused with settings that do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.generation.decoder import LeanDecoder
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.memory.devices import GIB, Device, named_device
from operant.engines.language.memory.estimate import PARTS
from operant.engines.language.memory.forecast import case_of, forecast
from operant.engines.language.memory.model_sizes import model_sizes
from operant.errors import UsageError
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.load import load
from operant.spec.schema import Spec
from tests.unit.engines.language.conftest import spec_of
from tests.unit.engines.language.small_models import KINDS, random_policy

CPU = Device("a CPU", 64 * GIB, on_gpu=False)
MODELS = {
    "float32": {},
    "bfloat16": {"dtype": "bfloat16"},
    "lora": {"lora": {"rank": 2}},
    "lora in bfloat16": {"lora": {"rank": 2}, "dtype": "bfloat16"},
    "sgd": {"optimizer": {"name": "sgd"}},
}


def with_meta(spec: Spec, **meta: Any) -> Spec:
    return spec.model_copy(update={"meta": spec.meta.model_copy(update=meta)})


def one_round(context: TrainingContext) -> None:
    context.learner.computes_all = True
    context.learner.snapshot_reference()
    context.learner.learn(context.gather(), Progress(0, 0), 1000)


def size(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@pytest.mark.parametrize("name", MODELS)
def test_lasting_parts_are_those_of_a_run(name: str) -> None:
    spec = with_meta(spec_of({"zero_variance": "keep"}, **MODELS[name]), eval_episodes=1, final_episodes=1)
    told = forecast(spec, CPU).phases["training"]
    with build_context(spec, Seeds(0)) as context:
        one_round(context)
        generator, optimizer = context.worker.generator, context.learner.optimizer
        assert isinstance(generator, TorchGenerator)
        assert generator._engine is not None
        decoder, stepper = generator._engine
        assert isinstance(decoder, LeanDecoder)
        rows = size(value for value in vars(stepper.slots).values() if value.numel())
        copies = size(copy for copy, _, _ in decoder.weights._copies)
        state = size(value for key, value in optimizer.state().items() if not key.startswith("step/"))
        weights = size(context.policy.model.parameters())
    assert told["kv_cache"] == pytest.approx(size([decoder.cache]) + rows, rel=0.01)
    assert told["optimizer"] == state
    assert told["weights"] == pytest.approx(weights + copies, rel=0.03)


def test_a_reference_is_a_copy_of_what_is_trained() -> None:
    for lora, copied in ((None, "parameters"), ({"rank": 2}, "trained")):
        plain, compared = (
            forecast(spec_of(algorithm, lora=lora), CPU).phases["training"]["weights"]
            for algorithm in ({}, {"kl": "k3", "kl_coef": 0.1})
        )
        with build_context(spec_of(lora=lora), Seeds(0)) as context:
            sizes = model_sizes(context.policy.model, torch.float32, on_gpu=False)
        assert compared - plain == 4 * getattr(sizes, copied)


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_has_sizes(kind: str) -> None:
    model = random_policy(kind).model
    sizes = model_sizes(model, torch.float32)
    assert (sizes.layers, sizes.hidden, sizes.vocabulary) == (2, 32, 258)
    assert sizes.trained == sum(weight.numel() for weight in model.parameters())


def test_settings_that_save_memory_are_seen_to() -> None:
    def peak(algorithm: dict[str, Any] | None = None, **model: Any) -> int:
        wide = {"layers": 8, "width": 256, "heads": 4, "context": 256}
        return forecast(spec_of({"batch_size": 256, **(algorithm or {})}, tiny=wide, **model), named_device("l4")).peak

    assert peak(gradient_checkpointing=True) < peak()
    assert peak(lora={"rank": 4}) < peak()
    assert peak({"pass_tokens": 256}) < peak()
    assert peak(dtype="bfloat16") < peak()
    assert peak({"top_p": 0.9}) > peak()


def test_what_cannot_fit_is_refused_with_settings_that_fit() -> None:
    spec = load("grpo_tiny", None, ["agent.model.tiny.layers=24", "agent.model.tiny.width=1024"]).spec
    whole = forecast(spec, named_device("h200"))
    assert whole.refusal is None
    scarce = Device("a small GPU", int(whole.peak * 0.8) + GIB)
    refusal = forecast(spec, scarce).refusal
    assert refusal is not None
    largest = max(PARTS, key=lambda part: whole.phases[whole.peak_phase][part])
    assert f"{whole.peak_phase} would take" in refusal.cause
    assert "a small GPU has room for" in refusal.cause
    assert largest.replace("kv_cache", "KV cache") in refusal.cause
    remedy = str(refusal.remedy).split("; or ")[0]
    changes = [word for word in remedy.split(" (")[0].split() if word != "-s"]
    words = ["agent.model.tiny.layers=24", "agent.model.tiny.width=1024", *changes]
    assert forecast(load("grpo_tiny", None, words).spec, scarce).refusal is None


@pytest.mark.parametrize("memory", ["4GiB", "12GiB"])
def test_where_no_single_setting_helps_several_are_named_that_fit_together(memory: str) -> None:
    words = ["agent.model.tiny.layers=8", "agent.model.tiny.width=1024", "agent.model.tiny.context=1024"]
    words += ["env.text.max_tokens=512", "agent.algorithm.batch_size=256", "agent.algorithm.pass_tokens=65536"]
    refusal = forecast(load("grpo_tiny", None, words).spec, named_device(memory)).refusal
    assert refusal is not None
    offers = str(refusal.remedy).split("; or ")
    assert any("pass_tokens" in offer and "slots" in offer for offer in offers)
    for offer in offers:
        changes = [word for word in offer.split(" (")[0].split() if word != "-s"]
        assert forecast(load("grpo_tiny", None, [*words, *changes]).spec, named_device(memory)).refusal is None


def test_a_gpu_smaller_than_what_cuda_takes_has_no_room() -> None:
    assert named_device("1MiB").room == 0


def test_a_model_that_fits_nowhere_has_no_setting_that_helps() -> None:
    spec = load("grpo_tiny", None, ["agent.model.tiny.layers=64", "agent.model.tiny.width=8192"]).spec
    refusal = forecast(spec, named_device("24GB")).refusal
    assert refusal is not None
    assert refusal.remedy == "a smaller model, or a device with more memory"


def test_supervised_learning_and_dialogues_are_foretold() -> None:
    assert forecast(load("sft_tiny", None, []).spec, named_device("h100")).peak > 0
    case, open_ended = case_of(load("grpo_prisoners_dilemma", None, []).spec, named_device("h100"))
    assert open_ended
    pairs = zip(case.round.prompts, case.round.completions, strict=True)
    assert {len(prompt) + length for prompt, length in pairs} == {case.model.tiny.context}


@pytest.mark.parametrize(
    ("text", "memory"),
    [("80GiB", 80 * GIB), ("24 GB", 24 * 10**9), ("H100", int(79.1 * GIB)), ("16000mib", 16_000 * 2**20)],
)
def test_a_device_is_named_or_measured(text: str, memory: int) -> None:
    assert named_device(text).memory == memory


@pytest.mark.parametrize("text", ["", "80", "h1000", "-4GiB", "0GiB"])
def test_no_device(text: str) -> None:
    with pytest.raises(UsageError, match="neither an amount nor a GPU"):
        named_device(text)
