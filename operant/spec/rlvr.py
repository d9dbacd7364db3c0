"""What a person may say about learning from verified answers: one family, whose members differ in their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from operant.spec.algorithm import Algorithm
from operant.spec.fields import Closed, Schedule, Scheduled
from operant.spec.fitting import closest, in_words, near_divisors, near_multiples
from operant.spec.misfit import Misfit, unused_net_misfits

if TYPE_CHECKING:
    from operant.spec.schema import Spec

Credit = Literal["grpo", "dr_grpo", "rloo", "reinforce_pp", "reinforce_pp_baseline", "max_rl"]
Scale = Literal["group", "batch", "none"]
Loss = Literal["clip", "gspo", "cispo", "reinforce"]
Aggregate = Literal["sequence_mean", "token_mean", "constant"]
GAMES = {
    "env.num_envs": "prompts are counted by agent.algorithm.batch_size",
    "env.max_t": "completions end by env.text.max_tokens",
    "env.normalize_obs": "text is not normalised",
    "env.normalize_reward": "agent.algorithm.scale does that",
    "env.clip_obs": "text has no limits",
    "env.clip_reward": "verdicts lie between 0 and 1",
    "env.vectorization": "tasks in words have no environments to step",
    "env.kwargs": "arguments of a task are in env.text.arguments",
    "meta.precision": "agent.model.dtype says it",
    "meta.compile": "language models are not compiled",
}


class WarmupSpec(Closed):
    """Supervised learning of gold answers before the first completion is drawn."""

    updates: int = Field(default=100, ge=1, le=10**9, description="Gradient steps.")
    batch_size: int = Field(default=64, ge=1, le=10**6, description="Gold answers in each.")
    lr: float = Field(default=1e-3, gt=0, le=1, description="Learning rate, falling linearly to a tenth.")
    problems: int | None = Field(
        default=None, ge=1, le=10**9, description="Only so many of the training problems; null for all."
    )


class VerifiedAlgorithm(Algorithm):
    """The base of algorithms that learn from groups of judged completions, without a critic (abstract)."""

    ENGINE = "language"
    RESUME = "exact"
    USES_MEMORY = False

    group_size: int = Field(default=8, ge=2, le=4096, description="Completions of each prompt.")
    batch_size: int = Field(default=64, ge=2, le=10**6, description="Completions of one round of generation.")
    minibatch_size: int | None = Field(
        default=None, ge=1, le=10**6, description="Completions of one gradient step; null for the whole round."
    )
    training_epoch: int = Field(default=1, ge=1, le=1000, description="Passes over a round's completions.")
    pass_tokens: int = Field(
        default=16_384, ge=16, le=10**8, description="Most tokens, padding included, in one forward and backward pass."
    )
    temperature: float = Field(default=1.0, gt=0, le=10, description="Temperature of the sampling that is learnt from.")
    top_p: float = Field(default=1.0, gt=0, le=1, description="Draw from the likeliest tokens of this probability.")
    top_k: int = Field(default=0, ge=0, le=10**6, description="Draw from so many likeliest tokens; 0 for all.")
    credit: Credit = Field(default="grpo", description="How rewards of a group become advantages.")
    scale: Scale = Field(
        default="group", description="Divide advantages by the rewards' deviation in the group, in the batch, or not."
    )
    loss: Loss = Field(
        default="clip",
        description="Clip ratios of tokens, or of sequences (gspo), or the weights of gradients (cispo), or nothing.",
    )
    aggregate: Aggregate = Field(
        default="sequence_mean", description="Mean over sequences of their token means, over all tokens, or a constant."
    )
    constant_length: int = Field(
        default=256, ge=1, le=10**6, description="What token sums are divided by, with aggregate `constant`."
    )
    clip_low: float = Field(default=0.2, ge=0, le=1, description="How far a ratio may fall below 1.")
    clip_high: float = Field(default=0.2, ge=0, le=100, description="How far a ratio may rise above 1.")
    importance: Literal["none", "truncate", "truncate_sequence", "icepop", "dppo"] = Field(
        default="none", description="Correct for generator and trainer that disagree: cut weights off, or mask tokens."
    )
    importance_low: float = Field(default=0.5, ge=0, le=1, description="Least weight that `icepop` keeps.")
    importance_high: float = Field(default=2.0, ge=1, le=1e6, description="Largest weight; more is cut off or masked.")
    importance_difference: float = Field(
        default=0.2, gt=0, le=1, description="Largest difference of probabilities that `dppo` keeps."
    )
    kl: Literal["none", "k1", "k2", "k3"] = Field(
        default="none", description="Estimator of the divergence from the first policy, added to the loss."
    )
    kl_coef: float = Field(default=0.0, ge=0, le=100, description="Its weight.")
    entropy_coef: Annotated[Schedule, Scheduled(ge=0, le=10)] = Field(
        default=0.0, description="Weight of the entropy bonus."
    )
    sft_coef: float = Field(
        default=0.0, ge=0, le=100, description="Weight of supervised loss on the gold answers of the same prompts."
    )
    teacher: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="A fixed model, named as `agent.model.source`, to come closer to on the tokens that were drawn.",
    )
    teacher_coef: float = Field(default=1.0, gt=0, le=1e3, description="Weight of the divergence from the teacher.")
    teacher_kl: Literal["k2", "k3"] = Field(
        default="k2", description="Its estimator; the gradient of k2 is that of the divergence itself."
    )
    zero_variance: Literal["keep", "drop", "resample"] = Field(
        default="drop", description="Groups whose rewards are all equal teach nothing: keep, drop, or draw others."
    )
    resample_rounds: int = Field(
        default=4, ge=1, le=1000, description="Most extra rounds of generation to fill a batch, with `resample`."
    )
    overlong: Literal["keep", "mask", "zero"] = Field(
        default="keep", description="Completions cut off by length: as judged, not learnt from, or rewarded with 0."
    )
    mismatch_coef: float = Field(
        default=0.0,
        ge=0,
        le=100,
        description="Weight of the squared difference of the trainer's and the generator's log-probabilities.",
    )
    staleness: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="Most updates between the weights that wrote a completion and those that learn from it; above 0 "
        "completions are written while the trainer trains, and a resume is warm.",
    )
    mismatch_limit: float | None = Field(
        default=0.5,
        gt=0,
        le=1e6,
        description="Stop when generator and trainer differ by more nats per token (k3); null for never.",
    )
    warmup: WarmupSpec | None = Field(default=None, description="Supervised learning first; null for none.")

    @property
    def step_size(self) -> int:
        """Completions of one gradient step."""
        return self.minibatch_size or self.batch_size

    @property
    def updates_per_round(self) -> int:
        """Gradient steps of one round in which every group is learnt from."""
        return self.training_epoch * max(1, self.batch_size // self.step_size)

    @classmethod
    def resume_kind(cls, spec: Mapping[str, Any]) -> str:
        # Which completions are at hand when is a matter of time, and no checkpoint keeps it.
        timed = spec["agent"]["algorithm"].get("staleness") or (spec["env"].get("text") or {}).get("deadline")
        return "warm" if timed or _guests(spec["env"]) else cls.RESUME

    def misfits(self, spec: Spec) -> Iterable[Misfit]:
        return [
            *unused_net_misfits(spec),
            *_batches(spec, self),
            *_parts(spec),
            *_divergence(self),
            *_tiny(spec),
            *_server(spec),
            *_ahead(spec, self),
            *_received(spec),
        ]

    def inert(self) -> Mapping[str, str]:
        reasons = dict(GAMES)
        if self.aggregate != "constant":
            reasons["agent.algorithm.constant_length"] = "aggregate is not constant"
        if self.importance != "icepop":
            reasons["agent.algorithm.importance_low"] = "importance is not icepop"
        if self.importance in ("none", "dppo"):
            reasons["agent.algorithm.importance_high"] = f"importance is {self.importance}"
        if self.importance != "dppo":
            reasons["agent.algorithm.importance_difference"] = "importance is not dppo"
        if self.loss in ("cispo", "reinforce"):
            reasons["agent.algorithm.clip_low"] = f"the loss {self.loss} has no lower limit"
        if self.loss == "reinforce":
            reasons["agent.algorithm.clip_high"] = "the loss reinforce has no limit"
        if self.teacher is None:
            reasons |= dict.fromkeys(
                ("agent.algorithm.teacher_coef", "agent.algorithm.teacher_kl"), "there is no teacher"
            )
        if self.zero_variance != "resample":
            reasons["agent.algorithm.resample_rounds"] = "zero_variance is not resample"
        return reasons


class GrpoSpec(VerifiedAlgorithm):
    """Group-relative policy optimisation (Shao et al., 2024)."""

    name: Literal["grpo"] = Field(default="grpo", description="Algorithm.")


class DrGrpoSpec(VerifiedAlgorithm):
    """GRPO done right (Liu et al., 2025): no division by deviation or length."""

    name: Literal["dr_grpo"] = Field(default="dr_grpo", description="Algorithm.")
    credit: Credit = Field(default="dr_grpo", description="How rewards of a group become advantages.")
    scale: Scale = Field(default="none", description="Divide advantages by a deviation of the rewards, or not.")
    aggregate: Aggregate = Field(default="constant", description="How the losses of tokens are added up.")


class DapoSpec(VerifiedAlgorithm):
    """Decoupled clipping and dynamic sampling (Yu et al., 2025)."""

    name: Literal["dapo"] = Field(default="dapo", description="Algorithm.")
    clip_high: float = Field(default=0.28, ge=0, le=100, description="How far a ratio may rise above 1.")
    aggregate: Aggregate = Field(default="token_mean", description="How the losses of tokens are added up.")
    zero_variance: Literal["keep", "drop", "resample"] = Field(
        default="resample", description="Groups whose rewards are all equal teach nothing: keep, drop, or draw others."
    )


class GspoSpec(VerifiedAlgorithm):
    """Group sequence policy optimisation (Zheng et al., 2025): ratios of whole sequences."""

    name: Literal["gspo"] = Field(default="gspo", description="Algorithm.")
    loss: Loss = Field(default="gspo", description="Clipped ratio of whole sequences.")
    clip_low: float = Field(default=3e-4, ge=0, le=1, description="How far a ratio may fall below 1.")
    clip_high: float = Field(default=4e-4, ge=0, le=100, description="How far a ratio may rise above 1.")


class CispoSpec(VerifiedAlgorithm):
    """Clipped importance-sampling weights (MiniMax, 2025): every token keeps its gradient."""

    name: Literal["cispo"] = Field(default="cispo", description="Algorithm.")
    loss: Loss = Field(default="cispo", description="Clipped weights of gradients.")
    aggregate: Aggregate = Field(default="token_mean", description="How the losses of tokens are added up.")
    clip_high: float = Field(default=4.0, ge=0, le=100, description="How far a weight may rise above 1.")


class RlooSpec(VerifiedAlgorithm):
    """REINFORCE with the mean of the others in its group for a baseline (Ahmadian et al., 2024)."""

    name: Literal["rloo"] = Field(default="rloo", description="Algorithm.")
    credit: Credit = Field(default="rloo", description="How rewards of a group become advantages.")
    scale: Scale = Field(default="none", description="Divide advantages by a deviation of the rewards, or not.")


class ReinforcePpSpec(VerifiedAlgorithm):
    """REINFORCE++ (Hu, 2025): advantages standardised over the whole batch."""

    name: Literal["reinforce_pp"] = Field(default="reinforce_pp", description="Algorithm.")
    credit: Credit = Field(default="reinforce_pp", description="How rewards of a group become advantages.")
    scale: Scale = Field(default="batch", description="Divide advantages by a deviation of the rewards, or not.")
    aggregate: Aggregate = Field(default="token_mean", description="How the losses of tokens are added up.")


VERIFIED: dict[str, type[VerifiedAlgorithm]] = {
    "grpo": GrpoSpec,
    "dr_grpo": DrGrpoSpec,
    "dapo": DapoSpec,
    "gspo": GspoSpec,
    "cispo": CispoSpec,
    "rloo": RlooSpec,
    "reinforce_pp": ReinforcePpSpec,
}


def _guests(env: Mapping[str, Any]) -> list[str]:
    """The environments of verifiers among the tasks: they live on their own time, and ask when they please."""
    parts = (env.get("text") or {}).get("mixture") or ()
    return [name for name in (env.get("name", ""), *(part["name"] for part in parts)) if name.startswith("verifiers:")]


def _batches(spec: Spec, algorithm: VerifiedAlgorithm) -> Iterable[Misfit]:
    """Whole groups fill a round, equal minibatches fill it too, and the budget holds one round."""
    batch, group, step = algorithm.batch_size, algorithm.group_size, algorithm.step_size
    if batch % group:
        sizes = near_multiples(group, batch, most=10**6)
        yield Misfit(
            "agent.algorithm.batch_size",
            f"does not hold whole groups of group_size = {group} completions",
            in_words(sizes, "group_size", near_divisors(batch, group, 2)),
            closest(sizes, batch),
            ("agent.algorithm.group_size",),
        )
    elif batch % step:
        sizes = near_divisors(batch, step)
        yield Misfit(
            "agent.algorithm.minibatch_size",
            f"does not divide batch_size = {batch}",
            in_words(sizes, "batch_size", near_multiples(step, batch, most=10**6)),
            closest(sizes, step),
            ("agent.algorithm.batch_size",),
        )
    if batch > spec.env.max_frame:
        problem = f"ends before the first round of batch_size = {batch} completions"
        yield Misfit("env.max_frame", problem, f"{batch} or more", batch, ("agent.algorithm.batch_size",))


def _parts(spec: Spec) -> Iterable[Misfit]:
    """A mixture has parts, and nothing else has."""
    text = spec.env.text
    mixed = spec.env.name == "mixture"
    if mixed and (text is None or not text.mixture):
        yield Misfit("env.name", "needs the tasks to mix", "env.text.mixture: [{name: ...}, {name: ...}]")
    elif text is not None and text.mixture and not mixed:
        yield Misfit(
            "env.text.mixture", "has no effect: env.name names one task", "env.name: mixture", None, ("env.name",)
        )
    for path in ("arguments", "order"):
        if text is not None and mixed and getattr(text, path):
            yield Misfit(f"env.text.{path}", "has no effect: each task of the mixture has its own", "leave it out")


def _divergence(algorithm: VerifiedAlgorithm) -> Iterable[Misfit]:
    """An estimator and its weight come together."""
    if algorithm.kl != "none" and algorithm.kl_coef == 0:
        yield Misfit(
            "agent.algorithm.kl", "has no effect: kl_coef is 0", "kl_coef 0.001", "none", ("agent.algorithm.kl_coef",)
        )
    elif algorithm.kl == "none" and algorithm.kl_coef > 0:
        yield Misfit("agent.algorithm.kl_coef", "has no effect: kl is none", "kl k3", 0.0, ("agent.algorithm.kl",))


def _ahead(spec: Spec, algorithm: VerifiedAlgorithm) -> Iterable[Misfit]:
    """Completions written ahead of the trainer can be used only if a whole round may pass; copies have weights."""
    steps, generator = algorithm.updates_per_round, spec.agent.model.generator if spec.agent.model else "torch"
    if 0 < algorithm.staleness < steps:
        yield Misfit(
            "agent.algorithm.staleness",
            f"is less than the {steps} updates of one round, so that nothing written meanwhile could be learnt from",
            f"0, or {steps} or more",
            steps,
            ("agent.algorithm.minibatch_size", "agent.algorithm.training_epoch"),
        )
    asked = {"agent.algorithm.staleness": algorithm.staleness > 0, "meta.cluster": spec.meta.cluster == "ray"}
    for path in (path for path, is_asked in asked.items() if is_asked and generator != "torch"):
        problem = f"does not fit: the generator {generator} takes no copies of the weights"
        yield Misfit(path, problem, "agent.model.generator torch", None, ("agent.model.generator",))
    if spec.meta.processes > 1 and any(asked.values()):
        path = next(path for path, is_asked in asked.items() if is_asked)
        problem = f"does not fit {path}: processes that share a model write and train in turns"
        yield Misfit("meta.processes", problem, "1", 1, (path,))


def _received(spec: Spec) -> Iterable[Misfit]:
    """Environments that ask when they please cannot be answered by processes that must work in step."""
    guests = _guests(spec.env.model_dump(include={"name": True, "text": {"mixture"}}))
    if guests and spec.meta.processes > 1:
        problem = f"does not fit {guests[0]}: processes that share a model answer in step, and it asks when it pleases"
        yield Misfit("meta.processes", problem, "1", 1, ("env.name",))


def _tiny(spec: Spec) -> Iterable[Misfit]:
    """Attention heads have equal, even shares of the width."""
    model = spec.agent.model
    if model is None:
        return
    tiny = model.tiny
    if tiny.width % (2 * tiny.heads):
        widths = near_multiples(2 * tiny.heads, tiny.width, most=16_384)
        yield Misfit(
            "agent.model.tiny.width",
            f"is no multiple of twice heads = {tiny.heads}",
            in_words(widths, "heads", near_divisors(tiny.width // 2, tiny.heads)),
            closest(widths, tiny.width),
            ("agent.model.tiny.heads",),
        )


def _server(spec: Spec) -> Iterable[Misfit]:
    """A server has an address."""
    model = spec.agent.model
    if model is not None and model.generator == "openai" and model.url is None:
        yield Misfit("agent.model.generator", "needs the address of the server", "agent.model.url: http://HOST:PORT/v1")
