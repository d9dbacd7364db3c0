"""Settings of algorithms that learn from verified answers: one family, whose members differ in their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from operant.spec.fields import fixed, free
from operant.spec.schedules import Schedule, Scheduled
from operant.spec.settings.algorithm import algorithm_name
from operant.spec.settings.supervised import LanguageAlgorithm, SftDataSpec, SftSpec, WarmupSpec, before_training

Credit = Literal["grpo", "dr_grpo", "rloo", "reinforce_pp", "reinforce_pp_baseline", "max_rl"]
Scale = Literal["group", "batch", "none"]
Loss = Literal["clip", "gspo", "cispo", "reinforce"]
Aggregate = Literal["sequence_mean", "sequence_sum", "token_mean", "constant"]
ZeroVariance = Literal["keep", "drop", "resample"]
TeacherKl = Literal["k2", "k3", "jsd", "forward"]
OVER_TOP_K = ("jsd", "forward")
"""Divergences over the teacher's likeliest tokens, not on the sampled ones."""
WEIGHING = ("truncate", "truncate_sequence")
"""Values of `importance` that weigh by the trainer's ratio to the generator."""
OF_THE_BATCH = ("reinforce_pp", "reinforce_pp_baseline")
"""Credits whose baseline is the whole batch's, so that groups of equal rewards teach too."""


class VerifiedAlgorithm(LanguageAlgorithm):
    """The base of algorithms that learn from groups of verified completions, without a critic (abstract)."""

    group_size: int = free(default=8, ge=1, le=4096, description="Completions of each prompt.")
    minibatch_size: int | None = free(
        default=None,
        ge=1,
        le=10**6,
        description="Completions of one gradient step; null for the whole round. Where fewer are learnt from, a round "
        "is cut into the number of equal steps that comes closest.",
    )
    training_epoch: int = free(default=1, ge=1, le=1000, description="Passes over a round's completions.")
    credit: Credit = free(default="grpo", description="How rewards of a group become advantages.")
    scale: Scale = free(
        default="group", description="Divide advantages by the rewards' deviation in the group, in the batch, or not."
    )
    loss: Loss = free(
        default="clip",
        description="Clip ratios of tokens, or of sequences (gspo), or the weights of gradients (cispo), or nothing.",
    )
    aggregate: Aggregate = free(
        default="sequence_mean",
        description="Mean over sequences of their token means or token sums, mean over all tokens, or token sums over "
        "a constant and the sequences.",
    )
    constant_length: int = free(
        default=256, ge=1, le=10**6, description="What token sums are divided by, with aggregate `constant`."
    )
    policy_coef: float = free(
        default=1.0, ge=0, le=1e3, description="Weight of the loss of rewards; 0 for distillation alone."
    )
    clip_low: float = free(default=0.2, ge=0, le=1, description="How far a ratio may fall below 1.")
    clip_high: float = free(default=0.2, ge=0, le=100, description="How far a ratio may rise above 1.")
    importance: Literal["none", "truncate", "truncate_sequence", "icepop", "dppo", "ipo"] = free(
        default="none",
        description="Correct for generator and trainer that disagree: weigh by their ratio, cut off (truncate), or "
        "mask tokens (icepop by their ratio, dppo by the difference in the advantage's direction, ipo in either).",
    )
    old_logprobs: Literal["auto", "trainer", "generator"] = free(
        default="auto",
        description="What ratios compare with: the trainer's own log-probabilities at the start of the update, or the "
        "generator's; `auto` is the generator's with staleness or a mask, unless importance weighs by truncate.",
    )
    importance_low: float = free(default=0.5, ge=0, le=1, description="Least weight that `icepop` keeps.")
    importance_high: float = free(default=2.0, ge=1, le=1e6, description="Largest weight; more is cut off or masked.")
    importance_difference: float = free(
        default=0.2, gt=0, le=1, description="Largest difference of probabilities that `dppo` and `ipo` keep."
    )
    kl: Literal["none", "k1", "k2", "k3"] = free(
        default="none",
        description="Divergence from the first policy, added to the loss: k2 has the gradient of KL(policy || first), "
        "k3 that of KL(first || policy); k1 has none on average and is refused.",
    )
    kl_coef: float = free(default=0.0, ge=0, le=100, description="Its weight.")
    reference_updates: int | None = fixed(
        "the checkpoint has the reference of the run, or none",
        default=None,
        ge=1,
        le=10**9,
        description="Updates after which the policy of that time takes the first one's place in `kl`; null for never.",
    )
    entropy_coef: Annotated[Schedule, Scheduled(ge=0, le=10)] = free(
        default=0.0, description="Weight of the entropy bonus."
    )
    sft_coef: Annotated[Schedule, Scheduled(ge=0, le=100)] = free(
        default=0.0, description="Weight of supervised loss on given answers."
    )
    sft_data: SftDataSpec | None = free(
        default=None,
        description="These answers, with `sft_coef`; null for the reference answers of the same prompts.",
    )
    sft_batch_size: int = free(default=64, ge=1, le=10**6, description="Examples of `sft_data` in each gradient step.")
    teacher: str | None = free(
        default=None,
        min_length=1,
        max_length=1000,
        description="A model, named as `agent.model.source`, to come closer to; `self` for the policy as it is, which "
        "is then asked otherwise (teacher_prompt).",
    )
    teacher_coef: float = free(default=1.0, gt=0, le=1e3, description="Weight of the divergence from the teacher.")
    teacher_kl: TeacherKl = free(
        default="k2",
        description="On the sampled tokens k2, with the gradient of KL(policy || teacher), or k3, of KL(teacher || "
        "policy); over the teacher's likeliest tokens jsd or forward, KL(teacher || policy).",
    )
    teacher_top_k: int = free(
        default=0, ge=0, le=10**4, description="How many likeliest tokens of the teacher jsd and forward compare."
    )
    jsd_alpha: float = free(
        default=0.5, gt=0, lt=1, description="The teacher's share in the mixture that jsd compares both with."
    )
    teacher_prompt: Literal["same", "chat", "answer"] = free(
        default="same",
        description="How the teacher is asked: as the policy, in its own chat template where it has one, or with the "
        "problem's answer told before.",
    )
    learn_from: Literal["all", "unsolved"] = free(
        default="all", description="Completions that are learnt from: all, or those rewarded with less than 1."
    )
    zero_variance: ZeroVariance = free(
        default="keep",
        description="Groups whose rewards are all equal: keep them in every mean, drop them from the batch, or draw "
        "others in their place.",
    )
    resample_rounds: int = free(
        default=4, ge=1, le=1000, description="Most extra rounds of generation to fill a batch, with `resample`."
    )
    overlong: Literal["keep", "mask", "zero"] = free(
        default="keep", description="Completions cut off by length: as verified, not learnt from, or rewarded with 0."
    )
    mismatch_coef: float = free(
        default=0.0,
        ge=0,
        le=100,
        description="Weight of a loss that keeps the trainer near the generator.",
    )
    mismatch_loss: Literal["squared", "kl"] = free(
        default="squared",
        description="That loss: the squared difference of log-probabilities of all tokens, or KL(policy || generator), "
        "importance-weighted, of the tokens that a mask keeps.",
    )
    staleness: int = free(
        default=0,
        ge=0,
        le=10_000,
        description="Most updates between the weights that generate a completion and those that learn from it; above 0"
        " completions are generated while the trainer trains, and a resume is warm.",
    )
    mismatch_limit: float | None = free(
        default=0.5,
        gt=0,
        le=1e6,
        description="Stop when generator and trainer differ by more nats per token (k3); null for never.",
    )
    probe_limit: float | None = free(
        default=None,
        gt=0,
        le=1e6,
        description="Stop when, after weights were handed over, generator and trainer differ on fixed prompts by more "
        "nats per token (k3); null for what the rounding of the precision explains.",
    )
    probe_every: int = free(
        default=1,
        ge=1,
        le=10**6,
        description="Check every so many hand-overs of weights; more than 1 where rounds take a fraction of a second.",
    )
    warmup: WarmupSpec | None = before_training(default=None, description="Supervised learning first; null for none.")

    @property
    def step_size(self) -> int:
        """Completions of one gradient step."""
        return self.minibatch_size or self.batch_size

    @property
    def compares_with(self) -> Literal["trainer", "generator"]:
        """Whose log-probabilities ratios compare with."""
        if self.old_logprobs != "auto":
            return self.old_logprobs
        in_step = self.importance == "none" and self.staleness == 0
        return "trainer" if in_step or self.importance in WEIGHING else "generator"

    @property
    def updates_per_round(self) -> int:
        """Gradient steps of one round, at most: those of one in which every completion is learnt from."""
        return self.training_epoch * max(1, self.batch_size // self.step_size)

    @classmethod
    def resume_kind(cls, spec: Mapping[str, Any]) -> str:
        # Which completions are at hand when is a matter of time, and no checkpoint keeps it.
        timed = spec["agent"]["algorithm"].get("staleness") or (spec["env"].get("text") or {}).get("deadline")
        others = external_environments(spec["env"]) or _asks_a_server(spec["env"])
        return "warm" if timed or others else cls.RESUME

    def inert(self) -> Mapping[str, str]:
        reasons = dict(super().inert())
        if self.aggregate != "constant":
            reasons["agent.algorithm.constant_length"] = "aggregate is not constant"
        if self.importance != "icepop":
            reasons["agent.algorithm.importance_low"] = "importance is not icepop"
        if self.importance in ("none", "dppo", "ipo"):
            reasons["agent.algorithm.importance_high"] = f"importance is {self.importance}"
        if self.importance not in ("dppo", "ipo"):
            reasons["agent.algorithm.importance_difference"] = "importance is neither dppo nor ipo"
        if not self.mismatch_coef:
            reasons["agent.algorithm.mismatch_loss"] = "mismatch_coef is 0"
        if self.loss in ("cispo", "reinforce"):
            reasons["agent.algorithm.clip_low"] = f"the loss {self.loss} has no lower limit"
        if self.loss == "reinforce":
            reasons["agent.algorithm.clip_high"] = "the loss reinforce has no limit"
        if self.policy_coef == 0:
            unread = ("credit", "scale", "loss", "clip_low", "clip_high")
            reasons |= {f"agent.algorithm.{name}": "policy_coef is 0" for name in unread}
        if self.teacher is None:
            unread = ("teacher_coef", "teacher_kl", "teacher_top_k", "jsd_alpha", "teacher_prompt")
            reasons |= {f"agent.algorithm.{name}": "there is no teacher" for name in unread}
        elif self.teacher_kl != "jsd":
            reasons["agent.algorithm.jsd_alpha"] = "teacher_kl is not jsd"
        if self.sft_data is None:
            reasons["agent.algorithm.sft_batch_size"] = "there is no sft_data"
        if self.zero_variance != "resample":
            reasons["agent.algorithm.resample_rounds"] = "zero_variance is not resample"
        return reasons


class GrpoSpec(VerifiedAlgorithm):
    """Group-relative policy optimisation (Shao et al., 2024)."""

    name: Literal["grpo"] = algorithm_name("grpo")


class DrGrpoSpec(VerifiedAlgorithm):
    """GRPO done right (Liu et al., 2025): no division by deviation or length."""

    name: Literal["dr_grpo"] = algorithm_name("dr_grpo")
    credit: Credit = free(default="dr_grpo", description="How rewards of a group become advantages.")
    scale: Scale = free(default="none", description="Divide advantages by a deviation of the rewards, or not.")
    aggregate: Aggregate = free(default="constant", description="How the losses of tokens are added up.")


class DapoSpec(VerifiedAlgorithm):
    """Decoupled clipping and dynamic sampling (Yu et al., 2025)."""

    name: Literal["dapo"] = algorithm_name("dapo")
    clip_high: float = free(default=0.28, ge=0, le=100, description="How far a ratio may rise above 1.")
    aggregate: Aggregate = free(default="token_mean", description="How the losses of tokens are added up.")
    zero_variance: ZeroVariance = free(
        default="resample", description="Groups whose rewards are all equal: keep, drop, or draw others."
    )


class GspoSpec(VerifiedAlgorithm):
    """Group sequence policy optimisation (Zheng et al., 2025): ratios of whole sequences."""

    name: Literal["gspo"] = algorithm_name("gspo")
    loss: Loss = free(default="gspo", description="Clipped ratio of whole sequences.")
    clip_low: float = free(default=3e-4, ge=0, le=1, description="How far a ratio may fall below 1.")
    clip_high: float = free(default=4e-4, ge=0, le=100, description="How far a ratio may rise above 1.")


class CispoSpec(VerifiedAlgorithm):
    """Clipped importance-sampling weights (MiniMax, 2025): every token keeps its gradient."""

    name: Literal["cispo"] = algorithm_name("cispo")
    loss: Loss = free(default="cispo", description="Clipped weights of gradients.")
    aggregate: Aggregate = free(default="token_mean", description="How the losses of tokens are added up.")
    clip_high: float = free(default=4.0, ge=0, le=100, description="How far a weight may rise above 1.")


class RlooSpec(VerifiedAlgorithm):
    """REINFORCE with the mean of the others in its group for a baseline (Ahmadian et al., 2024)."""

    name: Literal["rloo"] = algorithm_name("rloo")
    credit: Credit = free(default="rloo", description="How rewards of a group become advantages.")
    scale: Scale = free(default="none", description="Divide advantages by a deviation of the rewards, or not.")
    loss: Loss = free(default="reinforce", description="The policy gradient, without a clip.")
    aggregate: Aggregate = free(
        default="sequence_sum", description="How the losses of tokens are added up: a completion is one action."
    )


class ReinforcePpSpec(VerifiedAlgorithm):
    """REINFORCE++ (Hu, 2025): advantages standardised over all tokens of the batch."""

    name: Literal["reinforce_pp"] = algorithm_name("reinforce_pp")
    credit: Credit = free(default="reinforce_pp", description="How rewards of a group become advantages.")
    scale: Scale = free(default="batch", description="Divide advantages by a deviation of the rewards, or not.")
    aggregate: Aggregate = free(default="token_mean", description="How the losses of tokens are added up.")


class GkdSpec(VerifiedAlgorithm):
    """Generalized knowledge distillation (Agarwal et al., 2024): towards a teacher, on the policy's own completions."""

    name: Literal["gkd"] = algorithm_name("gkd")
    group_size: int = free(default=1, ge=1, le=4096, description="Completions of each prompt.")
    policy_coef: float = free(default=0.0, ge=0, le=1e3, description="Weight of the loss of rewards beside it.")
    teacher_kl: TeacherKl = free(default="jsd", description="Divergence: over the teacher's likeliest tokens, or not.")
    teacher_top_k: int = free(default=20, ge=0, le=10**4, description="How many of its likeliest tokens are compared.")


VERIFIED: dict[str, type[VerifiedAlgorithm]] = {
    "grpo": GrpoSpec,
    "dr_grpo": DrGrpoSpec,
    "dapo": DapoSpec,
    "gspo": GspoSpec,
    "cispo": CispoSpec,
    "rloo": RlooSpec,
    "reinforce_pp": ReinforcePpSpec,
    "gkd": GkdSpec,
}
LANGUAGE: dict[str, type[LanguageAlgorithm]] = {**VERIFIED, "sft": SftSpec}


def external_environments(env: Mapping[str, Any]) -> list[str]:
    """The environments of verifiers among the tasks: they run on their own time and send requests at any moment."""
    return [name for name, _ in _tasks(env) if name.startswith("verifiers:")]


def _asks_a_server(env: Mapping[str, Any]) -> bool:
    """Whether the executor of a task is a model behind a server, which may say something else when asked again."""
    return any(str(arguments.get("executor", "")).startswith("http") for _, arguments in _tasks(env))


def _tasks(env: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The tasks and their arguments."""
    text = env.get("text") or {}
    parts = [(part["name"], part.get("arguments") or {}) for part in text.get("mixture") or ()]
    return [(env.get("name", ""), text.get("arguments") or {}), *parts]
