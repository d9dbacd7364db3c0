"""Settings of supervised learning on given answers: alone (SFT), beside rewards, and before them (warm-up)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

from operant.spec.fields import Closed, fixed, free
from operant.spec.registry import in_engines
from operant.spec.settings.algorithm import Algorithm, algorithm_name

before_training = partial(fixed, "it was done before the checkpoint")
in_examples = partial(fixed, "the run is at a place in these examples")

GAMES = {
    "env.num_envs": "prompts are counted by agent.algorithm.batch_size",
    "env.max_t": "completions end by env.text.max_tokens",
    "env.normalize_obs": "text is not normalised",
    "env.normalize_reward": "agent.algorithm.scale does that",
    "env.clip_obs": "text has no limits",
    "env.clip_reward": "verifiers reward between 0 and 1",
    "env.vectorization": "language tasks have no environments to step",
    "env.kwargs": "arguments of a task are in env.text.arguments",
    "meta.precision": "agent.model.dtype says it",
    "meta.compile": "language models are not compiled",
}


class WarmupSpec(Closed):
    """Supervised learning of reference answers before the first completion is sampled."""

    updates: int = before_training(default=100, ge=1, le=10**9, description="Gradient steps.")
    batch_size: int = before_training(default=64, ge=1, le=10**6, description="Reference answers in each.")
    lr: float = before_training(default=1e-3, gt=0, le=1, description="Learning rate, falling linearly to a tenth.")
    problems: int | None = before_training(
        default=None, ge=1, le=10**9, description="Only so many of the training problems; null for all."
    )


class SftDataSpec(Closed):
    """A file of JSON lines with answers to imitate, each with the text before it and the answer."""

    path: str = in_examples(
        min_length=1, max_length=1000, description="The file; one at s3:// or hf:// is copied first."
    )
    prompt: str = in_examples(default="prompt", min_length=1, max_length=200, description="Field of the prompt.")
    completion: str = in_examples(
        default="completion", min_length=1, max_length=200, description="Field of the answer."
    )
    subset: tuple[str, ...] = in_examples(
        default=(), max_length=256, description="Only rows whose field `source` is one of these; none for all."
    )
    end_of_text: bool = free(default=True, description="Learn to end after the answer.")
    max_tokens: int | None = free(
        default=None, ge=1, le=10**6, description="Longer answers are cut off here; null for the model's context."
    )


class LanguageAlgorithm(Algorithm):
    """The base of every algorithm that trains a language model (abstract)."""

    LEARNERS = in_engines(language="trainer:Trainer")

    batch_size: int = free(default=64, ge=2, le=10**6, description="Completions of one round of generation.")
    pass_tokens: int = free(
        default=16_384, ge=16, le=10**8, description="Most tokens, padding included, in one forward and backward pass."
    )
    packing: bool = free(
        default=False,
        description="Put the samples of a pass one behind the other in a row without padding; attention keeps them "
        "apart. Those that share a prompt always stand so.",
    )
    temperature: float = free(default=1.0, gt=0, le=10, description="Temperature of the sampling that is learnt from.")
    top_p: float = free(default=1.0, gt=0, le=1, description="Draw from the likeliest tokens of this probability.")
    top_k: int = free(default=0, ge=0, le=10**6, description="Draw from so many likeliest tokens; 0 for all.")
    min_p: float = free(
        default=0.0,
        ge=0,
        le=1,
        description="Draw from tokens of at least this part of the likeliest one's probability.",
    )

    @property
    def truncates(self) -> bool:
        """Whether completions are drawn from a part of the vocabulary."""
        return bool(self.top_p < 1 or self.top_k or self.min_p)

    def inert(self) -> Mapping[str, str]:
        return GAMES


class SftSpec(LanguageAlgorithm):
    """Supervised fine-tuning: imitate given answers. A frame is an example."""

    name: Literal["sft"] = algorithm_name("sft")
    batch_size: int = free(default=64, ge=1, le=10**6, description="Examples of one gradient step.")
    temperature: float = free(default=1.0, gt=0, le=10, description="Temperature of sampled answers in evaluation.")
    sft_data: SftDataSpec | None = free(
        default=None, description="Answers to imitate; null for the reference answers of the training problems."
    )
