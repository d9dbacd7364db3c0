"""From the settings of a model to the generator that they ask for."""

from __future__ import annotations

from operant.engines.language.generation.generator import Generator, Sampling
from operant.engines.language.policy.model import Policy
from operant.spec.settings.language import ModelSpec
from operant.spec.settings.language_algorithms import VerifiedAlgorithm


def build_generator(policy: Policy, model: ModelSpec) -> Generator:
    """Whoever writes the completions."""
    if model.generator == "openai":
        from operant.engines.language.generation.remote_generator import RemoteGenerator

        return RemoteGenerator(policy, model.url or "")
    if model.generator == "vllm":
        from operant.engines.language.generation.vllm_generator import VllmGenerator

        return VllmGenerator(policy, model.vllm, model.slots)
    from operant.engines.language.generation.torch_generator import TorchGenerator

    return TorchGenerator(policy, slots=model.slots)


def training_sampling(settings: VerifiedAlgorithm, seed: int, seconds: float | None) -> Sampling:
    """How the completions of a group are drawn that are learnt from: what was left to draw from is kept."""
    return Sampling(
        n=settings.group_size,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        seed=seed,
        seconds=seconds,
        min_p=settings.min_p,
        keep_mask=True,
    )
