"""From the settings of a model to the generator that they ask for."""

from __future__ import annotations

from operant.engines.language.generation.generator import Generator
from operant.engines.language.policy.model import Policy
from operant.spec.settings.language import ModelSpec


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
