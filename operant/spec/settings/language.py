"""Settings of language models and of language tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from operant.spec.fields import Closed, fixed, free, section, widens
from operant.spec.registry import OneOf
from operant.spec.settings.rewards import REWARDS, RewardSpec

shape = partial(fixed, "the weights have the shape of the model")
in_mixture = partial(fixed, "the run is at a place in the problems of this mixture")

Rate = Annotated[float, Field(ge=0, lt=1)]


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    """A run keeps its spec as JSON, so dates and infinities cannot come back as they were."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise PydanticCustomError("not_plain", "only text, finite numbers, true, false, null") from None
    return value


PlainData = Annotated[dict[str, Any], AfterValidator(_storable)]


class LmOptimizerSpec(Closed):
    """How a language model's gradients become steps."""

    name: Literal["adamw", "adam", "sgd"] = fixed(
        "what an optimiser remembers is its own", default="adamw", description="Optimiser, by torch's name."
    )
    lr: float = free(default=1e-6, ge=0, le=1, description="Learning rate, once warmed up.")
    warmup_updates: int = free(default=0, ge=0, le=10**9, description="Updates over which it rises from zero.")
    lr_end_fraction: float = free(
        default=1.0, ge=0, le=1, description="The learning rate falls linearly to this fraction over `env.max_frame`."
    )
    betas: tuple[Rate, ...] = free(
        default=(0.9, 0.999), min_length=2, max_length=2, description="Decay of the two moments of the Adam family."
    )
    eps: float = free(default=1e-8, gt=0, lt=1, description="Epsilon of the Adam family.")
    weight_decay: float = free(default=0.0, ge=0, lt=1, description="Weight decay.")
    clip_grad_norm: float | None = free(
        default=1.0, gt=0, le=1e6, description="Largest gradient norm; null for no limit."
    )

    def inert(self) -> Mapping[str, str]:
        """The settings that this optimiser never reads, each with the reason."""
        return dict.fromkeys(("betas", "eps"), "sgd has no moments") if self.name == "sgd" else {}


class TinySpec(Closed):
    """The sizes of the model `tiny`, which is built on the spot and reads bytes."""

    layers: int = shape(default=4, ge=1, le=128, description="Layers.")
    width: int = shape(default=256, ge=8, le=16_384, description="Width of the model; a multiple of twice `heads`.")
    heads: int = shape(default=4, ge=1, le=256, description="Attention heads.")
    context: int = widens(
        "what was learnt of short texts holds in longer ones",
        default=256,
        ge=16,
        le=131_072,
        description="Most tokens of prompt and completion together.",
    )


class LoraSpec(Closed):
    """Low-rank adapters (Hu et al., 2021) instead of training every weight."""

    rank: int = fixed("the adapters have this shape", default=16, ge=1, le=4096, description="Rank of the adapters.")
    alpha: float = fixed(
        "the adapters were learnt at this scale",
        default=32.0,
        gt=0,
        le=1e5,
        description="Scale of the adapters, divided by the rank.",
    )
    dropout: float = free(default=0.0, ge=0, lt=1, description="Dropout of what enters the adapters.")
    targets: tuple[str, ...] = fixed(
        "the adapters belong to these layers",
        default=(),
        max_length=64,
        description="Names of the layers that get one; none for every linear layer.",
    )


VLLM_TOP_K = 1024
"""vLLM is asked for at most so many likeliest tokens of each place."""


class VllmSpec(Closed):
    """vLLM beside the trainer, when it generates the completions."""

    memory: float = free(
        default=0.4,
        gt=0,
        lt=1,
        description="Share of the GPU's memory for its weights and cache; without GPU, of the machine's for its cache.",
    )
    context: int | None = free(
        default=None,
        ge=16,
        le=10**7,
        description="Most tokens of prompt and completion together; null for the model's own limit.",
    )
    tensor_parallel: int = free(default=1, ge=1, le=64, description="GPUs that share each layer.")


class ModelSpec(Closed):
    """The language model that learns."""

    source: str = fixed(
        "the weights are those of the model",
        default="tiny",
        min_length=1,
        max_length=1000,
        description="`tiny`, a Hugging Face folder or id, a .gguf file, or a name of `operant models`.",
    )
    tiny: TinySpec = section(default_factory=TinySpec, description="Sizes of the model `tiny`.")
    dtype: Literal["float32", "bfloat16"] = fixed(
        "the weights are kept in this precision", default="float32", description="Of the weights and the arithmetic."
    )
    lora: LoraSpec | None = fixed(
        "either every weight was trained, or adapters",
        default=None,
        description="Train low-rank adapters only; null for every weight.",
    )
    gradient_checkpointing: bool = free(
        default=False, description="Compute activations twice to keep fewer of them in memory."
    )
    template: Literal["auto", "chat", "raw"] = fixed(
        "the model has learnt to read prompts in this form",
        default="auto",
        description="Wrap prompts in the model's chat template; `auto` does where it has one.",
    )
    generator: Literal["torch", "vllm", "openai"] = free(
        default="torch", description="What generates completions: the built-in generator, vLLM, or a server."
    )
    url: str | None = free(default=None, max_length=1000, description="Address of the server, for `openai`.")
    vllm: VllmSpec = section(default_factory=VllmSpec, description="Settings of vLLM, for `vllm`.")
    slots: int = free(default=256, ge=1, le=65_536, description="Completions generated side by side.")
    optimizer: LmOptimizerSpec = section(default_factory=LmOptimizerSpec, description="How gradients become steps.")


class PartSpec(Closed):
    """One task of a mixture."""

    name: str = in_mixture(min_length=1, max_length=200, description="Name of a task; see `operant tasks`.")
    label: str | None = in_mixture(
        default=None,
        min_length=1,
        max_length=200,
        description="What it is called, where the mixture has one task twice.",
    )
    arguments: PlainData = in_mixture(default_factory=dict, description="Arguments of the task.")
    order: str | None = in_mixture(
        default=None, max_length=1000, description="File of problem ids, one a line, in the order to train on."
    )
    weight: float = in_mixture(default=1.0, ge=0, le=1e6, description="Share of the training problems, when weighted.")
    weight_end: float | None = in_mixture(
        default=None,
        ge=0,
        le=1e6,
        description="That share at the end of `curriculum`, and of the held-out problems; null for `weight`.",
    )
    count: int | None = in_mixture(
        default=None,
        ge=1,
        le=10**12,
        description="Problems before the next task begins, when sequential; null for all.",
    )


class DialogueSpec(Closed):
    """Tasks of many turns: how long they may go on, what they earn, and how they are learnt from."""

    turns: int | None = free(
        default=None, ge=1, le=100_000, description="Most turns of a rollout; null for each task's own limit."
    )
    strategy: Literal["interleaved", "branching"] = free(
        default="interleaved",
        description="Learn from a rollout as one sample in which the environment's text is masked, or from every turn "
        "as a sample of its own.",
    )
    history: int | None = free(
        default=None,
        ge=0,
        le=100_000,
        description="Turns before the last that stay in a prompt, beside the system message; null for all. Needs "
        "`strategy: branching`.",
    )
    reward: Literal["final", "best", "delta", "binary", "target", "last", "moving_best", "percentile"] = free(
        default="final",
        description="Learn from the hidden score at the end, from the best validated one, or from the sum of "
        "improvements between validations. Of trees of attempts: whether the baseline is beaten (binary), a target, "
        "what the last attempt was worth, or whether the best of all rollouts so far (moving_best) or most of the last "
        "ones (percentile) are.",
    )
    reward_every: int | None = free(
        default=None, ge=1, le=10**6, description="Rollouts after which a moving threshold moves; null for a round."
    )
    reward_window: int = free(
        default=64, ge=8, le=10**6, description="Last rollouts that `percentile` looks back on, once there are 8."
    )
    reward_percentile: float = free(
        default=70.0, gt=0, lt=100, description="The percentile of their scores that is to be beaten."
    )
    concurrency: int = free(
        default=8, ge=1, le=4096, description="Rollouts under way at once, each in its own environment."
    )
    keep_ids: bool = free(default=False, description="Keep the tokens of every turn in the record of episodes.")


class TextSpec(Closed):
    """The language task: its arguments, or a mixture of tasks, and how answers are verified."""

    arguments: PlainData = fixed(
        "the problem would be another one",
        default_factory=dict,
        description="Arguments of the task that `env.name` names.",
    )
    mixture: tuple[PartSpec, ...] = in_mixture(
        default=(), max_length=256, description="Tasks to mix, when `env.name` is `mixture`."
    )
    mode: Literal["weighted", "sequential"] = in_mixture(
        default="weighted", description="Draw from the tasks by weight, or take one after the other."
    )
    curriculum: int | None = in_mixture(
        default=None,
        ge=1000,
        le=10**8,
        description="Problems over which each task's `weight` moves to its `weight_end`, in steps of 1,000; null for "
        "weights that stay.",
    )
    order: str | None = in_mixture(
        default=None, max_length=1000, description="File of problem ids, one a line, in the order to train on."
    )
    max_tokens: int | None = free(
        default=None, ge=1, le=10**6, description="Longest completion; null for each problem's own limit."
    )
    stop: tuple[str, ...] | None = free(
        default=None,
        max_length=64,
        description="Texts after which a completion ends; null for each problem's own, [] for none.",
    )
    system: str = free(default="", max_length=100_000, description="Text before the prompts that have none.")
    prefix: str = free(
        default="", max_length=100_000, description="Beginning of the answer, where a problem has none of its own."
    )
    workers: int = free(default=2, ge=1, le=1024, description="Processes that verify answers.")
    seconds: float | None = free(
        default=None, gt=0, le=86_400, description="Time limit of one verification; null for each task's own."
    )
    deadline: float | None = free(
        default=None,
        gt=0,
        le=86_400,
        description="Seconds for the completions of a call, and then for their verification; what is late is left out.",
    )
    dialogue: DialogueSpec = section(default_factory=DialogueSpec, description="Of tasks of many turns.")
    reward_functions: tuple[Annotated[RewardSpec, OneOf(REWARDS)], ...] = free(
        default=(),
        max_length=64,
        description="Reward functions whose weighted values are added to the verifier's score; see "
        "`operant help reward`.",
    )
    verifier_weight: float = free(
        default=1.0,
        ge=0,
        le=1e6,
        description="Weight of the verifier's score beside reward functions; 0 puts them in its place.",
    )


class RaySpec(Closed):
    """Generators and verifiers as actors of Ray; the trainer is the process that starts them."""

    address: str | None = free(
        default=None, min_length=1, max_length=1000, description="Cluster to join; null to start one here."
    )
    generators: int = free(default=1, ge=1, le=1024, description="Copies of the model that generate completions.")
    generator_cpus: float = free(default=1.0, ge=0, le=1024, description="CPUs that each of them asks for.")
    generator_gpus: float = free(default=0.0, ge=0, le=64, description="GPUs that each of them asks for.")
    verifier_cpus: float = free(
        default=0.5, ge=0, le=1024, description="CPUs that each of the `env.text.workers` verifiers asks for."
    )
    store_mb: int | None = free(
        default=None, ge=80, le=10**7, description="Megabytes of the object store here; null for Ray's choice."
    )
