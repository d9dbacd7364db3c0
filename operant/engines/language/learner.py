"""The learner: credited completions become gradients and steps."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from operant.engines.language.logprobs import token_logprobs
from operant.engines.language.model import Policy
from operant.engines.language.optimise import Optimiser
from operant.engines.language.pack import Batch, Sample, micro_batches
from operant.engines.language.rollout import Group
from operant.engines.language.sample import Lesson, lessons_of
from operant.run.seeding import Seeds
from operant.spec.language import ModelSpec
from operant.spec.rlvr import VerifiedAlgorithm


@dataclass
class Piece:
    """One micro-batch, and for each of its completion tokens what the loss needs to know."""

    batch: Batch
    advantage: Tensor
    sampled: Tensor
    old: Tensor | None = None
    reference: Tensor | None = None


@dataclass
class Report:
    """What came of a round: gradient steps taken, and means to log."""

    steps: int = 0
    means: dict[str, float] = field(default_factory=dict)
