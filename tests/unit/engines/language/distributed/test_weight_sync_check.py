"""Weight syncs that go wrong: each fault is put into a real generator or server, and found at the next hand-over."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.distributed.weight_sync import trained_weights
from operant.engines.language.distributed.weight_sync_check import PROBE_KL, WeightSyncCheck
from operant.engines.language.generation import remote_generator, torch_generator
from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.remote_generator import RemoteGenerator
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.policy.tiny import TinySizes
from operant.engines.language.policy.weights import LeanWeights
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.errors import RunError
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from tests.unit.engines.language.conftest import graded, spec_of
from tests.unit.engines.language.served_models import serving

LORA = {"lora": {"rank": 4}}
KINDS = ("own", "copy", "server", "lora", "lora server")


@dataclass
class Pair:
    """A trainer, and a generator that gets its weights; `inner` is what holds them in the end."""

    context: TrainingContext
    generator: Any
    inner: TorchGenerator
    told: list[str]

    def sync(self) -> dict[str, float]:
        """Learn a round, and hand the weights over."""
        context, check = self.context, self.context.sync_check
        assert check is not None
        report = context.learner.learn(graded(context.gather()), Progress(), 1000)
        context.tracker.updates += report.steps
        sent = check.send(context.tracker.updates)
        weights = {} if isinstance(self.generator, RemoteGenerator) else trained_weights(context.policy)
        return check.sync(self.generator, {} if self.inner is context.worker.generator else weights, sent)


@contextmanager
def pair(kind: str, **model: Any) -> Iterator[Pair]:
    """A pair that has been in step for one round."""
    told: list[str] = []
    wishes = {**(LORA if "lora" in kind else {}), **model}
    telemetry = Telemetry(tell=lambda _, message: told.append(message))
    with build_context(spec_of({"zero_variance": "keep"}, **wishes), Seeds(3), telemetry=telemetry) as context:
        own = context.worker.generator
        assert isinstance(own, TorchGenerator)
        if "server" in kind:
            other = load_policy("tiny", seed=9, tiny=TinySizes(1, 32, 2, 48), dtype=model.get("dtype", "float32"))
            with serving(other, allow_load=True) as server:
                generator = RemoteGenerator(context.policy, server.url)
                with closing(generator):
                    made = Pair(context, generator, server.service.generator, told)
                    made.sync()
                    yield made
        else:
            generator = own if kind == "own" else TorchGenerator(copy.deepcopy(context.policy))
            made = Pair(context, generator, generator, told)
            made.sync()
            yield made


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_generator_in_step_passes_and_its_divergence_is_a_metric(kind: str, dtype: str) -> None:
    with pair(kind, dtype=dtype) as made:
        found = [made.sync()[PROBE_KL] for _ in range(3)]
        assert max(found) < (1e-10 if dtype == "float32" else 1e-3)
        assert made.told == []


def refused(made: Pair) -> str:
    """Why the next hand-over stops the run; it was sent twice."""
    with pytest.raises(RunError) as stopped:
        made.sync()
    assert len(made.told) == 1
    assert "sent once more" in made.told[0]
    assert stopped.value.remedy is not None
    return stopped.value.cause


@pytest.mark.parametrize("kind", ["own", "lora"])
def test_a_decoder_that_keeps_old_copies_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(kind) as made:
        monkeypatch.setattr(LeanWeights, "refresh", lambda _: None)
        assert "another fingerprint" in refused(made)


@pytest.mark.parametrize("kind", ["copy", "server", "lora", "lora server"])
def test_a_generator_that_quietly_keeps_old_weights_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(kind) as made:
        monkeypatch.setattr(torch_generator, "copy_weights", lambda *_: None)
        assert "another fingerprint of" in refused(made)


def test_one_that_keeps_even_its_version_is_found() -> None:
    with pair("server") as made:
        made.inner.load = lambda *_: None  # pyright: ignore[reportAttributeAccessIssue]
        assert "has version 1, so the weights did not arrive" in refused(made)


def flip_one_bit(file: Path) -> None:
    """Flip the lowest bit of the last weight in a file."""
    data = bytearray(file.read_bytes())
    data[-4] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("times", [1, 2])
def test_one_bit_flipped_in_transit_is_found_and_mended_if_the_second_sending_is_whole(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = remote_generator._write_weights, list[int]()

    def write_and_flip(folder: Path, *arguments: Any) -> None:
        write(folder, *arguments)
        if len(written) < times:
            flip_one_bit(folder / "model.safetensors")
        written.append(1)

    with pair("server") as made:
        monkeypatch.setattr(remote_generator, "_write_weights", write_and_flip)
        if times == 2:
            assert "another fingerprint of 1 of 15 tensors (model.norm.weight)" in refused(made)
        else:
            assert made.sync()[PROBE_KL] < 1e-10
            assert "another fingerprint of 1 of 15 tensors" in made.told[0]


def other_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes again, numbered the other way round."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet(), reverse=True)
    fast = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(["<p>", "<e>", *letters])}, merges=[]))
    fast.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<p>", eos_token="<e>")


@pytest.mark.parametrize("kind", ["copy", "server"])
def test_a_wrong_tokenizer_is_found(kind: str) -> None:
    with pair(kind) as made:
        made.inner.policy = replace(made.inner.policy, tokenizer=other_tokenizer())
        assert "has another tokenizer" in refused(made)


def test_a_tokenizer_that_reads_the_same_vocabulary_otherwise_is_found() -> None:
    with pair("copy") as made:
        tokenizer: Any = copy.deepcopy(made.inner.policy.tokenizer)
        tokenizer.backend_tokenizer.decoder = decoders.Metaspace()
        made.inner.policy = replace(made.inner.policy, tokenizer=tokenizer)
        assert "it reads tokens" in refused(made)


@pytest.mark.parametrize("kind", ["own", "copy", "server"])
def test_a_changed_temperature_is_found_and_named(kind: str) -> None:
    with pair(kind) as made:
        generate = made.inner.generate

        def warmer(prompts: list[Prompt], sampling: Sampling, *listener: Any) -> Any:
            return generate(prompts, replace(sampling, temperature=1.25 * sampling.temperature), *listener)

        gather: Callable[..., Any] = made.context.gather
        made.context.gather = lambda: _undisturbed(made, generate, gather)  # pyright: ignore[reportAttributeAccessIssue]
        made.inner.generate = warmer  # pyright: ignore[reportAttributeAccessIssue]
        assert "it seems to draw at temperature 1.2" in refused(made)


def _undisturbed(made: Pair, generate: Any, gather: Callable[..., Any]) -> Any:
    """A round of completions before the fault."""
    warmer, made.inner.generate = made.inner.generate, generate
    try:
        return gather()
    finally:
        made.inner.generate = warmer


def in_bfloat16(policy: Policy) -> None:
    """Let a model compute in another precision."""
    model: Any = policy.model
    model.to(torch.bfloat16)


@pytest.mark.parametrize("kind", ["copy", "server"])
def test_another_precision_is_found_and_named(kind: str) -> None:
    with pair(kind) as made:
        made.inner.close()
        in_bfloat16(made.inner.policy)
        told = refused(made)
        assert "computes in bfloat16, the trainer in float32" in told
        assert "though the weights arrived" in told


def test_a_limit_of_ones_own_allows_another_precision() -> None:
    with pair("copy") as made:
        check = made.context.sync_check
        assert check is not None
        check.limit = 0.1
        made.inner.close()
        in_bfloat16(made.inner.policy)
        assert 1e-9 < made.sync()[PROBE_KL] < 0.1
        assert made.told == []


def test_a_fault_that_is_there_from_the_start_is_no_part_of_the_calibration(context: TrainingContext) -> None:
    check = WeightSyncCheck(context.policy, 1.0, None, lambda *_: None)
    half: Policy = copy.deepcopy(context.policy)
    in_bfloat16(half)
    with pytest.raises(RunError, match="computes in bfloat16"):
        check.sync(TorchGenerator(half), trained_weights(context.policy), check.send(0))


def test_rollouts_that_run_ahead_are_checked_in_their_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of({"zero_variance": "keep", "staleness": 1})
    with build_context(spec, Seeds(3), telemetry=Telemetry()) as context:
        assert context.async_rollouts is not None
        context.publish()
        context.async_rollouts.start(0)
        report = context.learner.learn(graded(context.gather()), Progress(), 1000)
        assert context.tracker.flush()[PROBE_KL] < 1e-10
        context.tracker.updates += report.steps
        monkeypatch.setattr(torch_generator, "copy_weights", lambda *_: None)
        context.publish()
        with pytest.raises(RunError, match="another fingerprint"):
            list(iter(context.gather, None))
