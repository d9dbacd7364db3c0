"""Memory by part: what stays on the device, and the most that generation, scoring and training need beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from operant.engines.language.generation.decoder import BLOCK
from operant.engines.language.generation.torch_generator import PREFILL_TOKENS
from operant.engines.language.memory.activations import (
    PassShape,
    forward_bytes,
    head_backward_bytes,
    head_forward_bytes,
    input_bytes,
    saved_bytes,
    working_bytes,
)
from operant.engines.language.memory.model_sizes import ModelSizes
from operant.engines.language.policy.sampling_mask import packed_width

PARTS = ("weights", "gradients", "optimizer", "activations", "kv_cache", "logits", "workspace")

WORKSPACE_BYTES = 32 * 2**20
"""What cuBLAS keeps on a GPU for each of the two streams that are used (the trainer's, and that of captured graphs)."""


@dataclass(frozen=True)
class Generation:
    """How the built-in generator is asked: rows side by side, the longest text, and how tokens are drawn."""

    rows: int
    prompts: int
    prompt_length: int
    length: int
    completion: int
    masks: bool = False
    sorts: bool = False


@dataclass(frozen=True)
class TrainingPlan:
    """What a run does with a model: the micro-batches of a round, and what is kept beside the policy.

    `copies` are weights of further models on the device (a reference, a teacher, a generator of its own), `moments`
    the numbers that the optimizer keeps for each trained weight, and `passes` the micro-batches of a gradient step.
    """

    shapes: Sequence[PassShape]
    passes: int
    checkpointing: bool = False
    moments: int = 2
    copies: int = 0
    scores: bool = False
    entropy: bool = False
    masked: bool = False
    generation: Generation | None = None
    processes: int = 1
    on_gpu: bool = True


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes by part in each phase; a phase's total is what the device must have."""

    phases: dict[str, dict[str, int]] = field(default_factory=dict)

    def total(self, phase: str) -> int:
        """The most bytes of a phase."""
        return sum(self.phases[phase].values())

    @property
    def peak_phase(self) -> str:
        """The phase that needs most."""
        return max(self.phases, key=self.total)

    @property
    def peak(self) -> int:
        """The most bytes at any moment."""
        return self.total(self.peak_phase)


def estimate_memory(sizes: ModelSizes, plan: TrainingPlan) -> MemoryEstimate:
    """The memory of a run once every part of it has been used."""
    lasting = _lasting(sizes, plan)
    phases = {"training": lasting | _largest(_training_moments(sizes, plan))}
    if plan.generation is not None:
        phases["generation"] = lasting | _largest(_generation_moments(sizes, plan.generation))
    if plan.scores:
        phases["scoring"] = lasting | _scoring(sizes, plan)
    return MemoryEstimate({name: {part: parts.get(part, 0) for part in PARTS} for name, parts in phases.items()})


def _lasting(sizes: ModelSizes, plan: TrainingPlan) -> dict[str, int]:
    """What stays from round to round: weights and their copies, the optimizer's numbers, the cache of the generator."""
    item, share = sizes.itemsize, plan.processes
    weights = item * (sizes.parameters + plan.copies)
    weights += item * sizes.parameters // share if share > 1 else 0  # the slice that is trained, beside whole weights
    masters = 4 if item < 4 else 0
    found = {"weights": weights, "optimizer": sizes.trained * (masters + 4 * plan.moments) // share}
    found["workspace"] = 2 * WORKSPACE_BYTES if plan.on_gpu else 0
    if plan.generation is not None:
        found["weights"] += item * sizes.fused
        found["kv_cache"] = _cache(sizes, plan.generation)
    return found


def _training_moments(sizes: ModelSizes, plan: TrainingPlan) -> list[dict[str, int]]:
    """The moments of a gradient step that may need most."""
    item, head = sizes.itemsize, sizes.itemsize * sizes.head if sizes.head_trained else 0
    gradients = item * sizes.trained // plan.processes
    inputs = sum(input_bytes(sizes, shape, plan.masked) for shape in plan.shapes)
    moments = [{"gradients": gradients + head, "activations": inputs}]
    moments.append({"gradients": 4 * sizes.trained // plan.processes, "activations": inputs})
    before = gradients if plan.passes > 1 else 0
    for shape in set(plan.shapes):
        saved = inputs + saved_bytes(sizes, shape, plan.checkpointing, plan.on_gpu)
        logits = head_backward_bytes(sizes, shape, plan.entropy, plan.masked)
        working = working_bytes(sizes, shape)
        moments.append({"gradients": before, "activations": saved, "logits": logits})
        moments.append({"gradients": before + (head if plan.passes == 1 else 0), "activations": saved + working})
    return moments


def _scoring(sizes: ModelSizes, plan: TrainingPlan) -> dict[str, int]:
    inputs = sum(input_bytes(sizes, shape, plan.masked) for shape in plan.shapes)
    return _largest(
        [
            moment
            for shape in set(plan.shapes)
            for moment in (
                {"activations": inputs + forward_bytes(sizes, shape)},
                {
                    "activations": inputs + sizes.itemsize * sizes.hidden * (shape.tokens + shape.learnt),
                    "logits": head_forward_bytes(sizes, shape),
                },
            )
        ]
    )


def _generation_moments(sizes: ModelSizes, asked: Generation) -> list[dict[str, int]]:
    """Reading prompts, and drawing tokens for all rows at once."""
    item = sizes.itemsize
    together = min(asked.prompts, max(1, PREFILL_TOKENS // asked.prompt_length))
    tokens = together * asked.prompt_length
    kept = 2 * sizes.layers * sizes.kv_width * item
    inner = item * (3 * sizes.hidden + 2 * (sizes.q_width + 2 * sizes.kv_width) + 3 * sizes.intermediate)
    # Float32 has no kernel in which query heads share keys, so scores of all pairs are written out.
    scores = 2 * sizes.wide * sizes.heads * asked.prompt_length if sizes.grouped and item == 4 else 0
    read = asked.prompts * asked.prompt_length * kept
    drawn = asked.rows * sizes.vocabulary * _drawn(sizes, asked)
    prompt_logits = asked.prompts * sizes.vocabulary * item
    return [
        {"activations": read + tokens * max(kept, inner + scores), "logits": prompt_logits},
        {"activations": read, "logits": prompt_logits + drawn},
    ]


def _drawn(sizes: ModelSizes, asked: Generation) -> int:
    """Bytes of one logit while a token is drawn: as computed, in float32, and what is made of it."""
    made = 4 * sizes.wide if sizes.itemsize < 4 else 3 * sizes.wide
    return sizes.itemsize + made + (32 if asked.sorts else 0) + (12 if asked.masks else 0)


def _cache(sizes: ModelSizes, asked: Generation) -> int:
    """Keys and values of all rows, and what the rows have written."""
    length = -(-asked.length // BLOCK) * BLOCK
    rows = asked.rows * 2 * sizes.layers * sizes.kv_width * length * sizes.itemsize
    mask = packed_width(sizes.vocabulary) if asked.masks else 0
    return rows + asked.rows * (asked.completion + 1) * (16 + mask)


def _largest(moments: Sequence[dict[str, int]]) -> dict[str, int]:
    return max(moments, key=lambda parts: sum(parts.values()))
