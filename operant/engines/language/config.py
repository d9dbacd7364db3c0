"""The parts of a spec that this engine reads: the algorithm, the model and the task."""

from __future__ import annotations

from typing import Any

from operant.spec.schema import Spec
from operant.spec.settings.language import ModelSpec, TextSpec
from operant.spec.settings.language_algorithms import VerifiedAlgorithm


def settings_of(spec: Spec) -> VerifiedAlgorithm:
    """The algorithm, which is one of this engine's."""
    settings = spec.agent.algorithm
    assert isinstance(settings, VerifiedAlgorithm)
    return settings


def model_of(spec: Spec) -> ModelSpec:
    """The model; a spec of this engine always has one."""
    return spec.agent.model or ModelSpec()


def text_of(spec: Spec) -> TextSpec:
    """What is said about the task."""
    return spec.env.text or TextSpec()


def reward_data(text: TextSpec) -> list[dict[str, Any]]:
    """The reward functions as plain data, from which every process that computes them makes its own."""
    return [each.model_dump(mode="json") for each in text.reward_functions]
