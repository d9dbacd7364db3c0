"""The parts of a spec that this engine reads: the algorithm, the model and the task."""

from __future__ import annotations

from typing import Any

from operant.spec.schema import Spec
from operant.spec.settings.language import ModelSpec, TextSpec
from operant.spec.settings.language_algorithms import GrpoSpec, VerifiedAlgorithm
from operant.spec.settings.supervised import LanguageAlgorithm, SftDataSpec, SftSpec


def settings_of(spec: Spec) -> VerifiedAlgorithm:
    """The algorithm, which is one of this engine's.

    SFT has none of the settings of rewards and rollouts: for the answers of its evaluations they have their defaults.
    """
    settings = spec.agent.algorithm
    assert isinstance(settings, LanguageAlgorithm)
    if isinstance(settings, VerifiedAlgorithm):
        return settings
    shared = {name: getattr(settings, name) for name in LanguageAlgorithm.model_fields if name != "name"}
    return GrpoSpec().model_copy(update=shared)


def supervised_of(spec: Spec) -> SftSpec | None:
    """The settings of SFT alone; None for algorithms that learn from rewards or a teacher."""
    return spec.agent.algorithm if isinstance(spec.agent.algorithm, SftSpec) else None


def sft_data_of(spec: Spec) -> SftDataSpec | None:
    """The file of examples to imitate; None where the reference answers are imitated, or nothing."""
    return (supervised_of(spec) or settings_of(spec)).sft_data


def model_of(spec: Spec) -> ModelSpec:
    """The model; a spec of this engine always has one."""
    return spec.agent.model or ModelSpec()


def text_of(spec: Spec) -> TextSpec:
    """What is said about the task."""
    return spec.env.text or TextSpec()


def reward_data(text: TextSpec) -> list[dict[str, Any]]:
    """The reward functions as plain data, from which every process that computes them makes its own."""
    return [each.model_dump(mode="json") for each in text.reward_functions]
