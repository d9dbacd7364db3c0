"""Losses on the tokens of completions: a term for each token, then a sum over a denominator of the whole batch.

A micro-batch never knows how large its batch is, so what a sum is divided by is always passed in (`Normalizer`,
from all completions of the step, on all ranks). Sums of micro-batches then add up to the loss of the batch exactly.
Notation: pi the model in training, mu the generator that wrote the tokens, old what ratios compare with (the model at
the beginning of the update, or mu), ref a fixed model; r = pi/old; A the advantage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from operant.spec.schedules import value_at
from operant.spec.settings.language_algorithms import TeacherKl, VerifiedAlgorithm

Surrogate = Literal["clip", "cispo", "reinforce"]
Level = Literal["token", "sequence"]
Mean = Literal["token", "sequence", "sum", "constant"]
Divergence = Literal["k1", "k2", "k3"]
Mask = Literal["none", "icepop", "dppo", "ipo"]
Drift = Literal["squared", "kl"]
Correction = Literal["none", "token", "sequence"]
FLOOR = 1e-12
"""The least probability whose logarithm is taken."""


@dataclass(frozen=True)
class LossSettings:
    """Which loss. Ratios are clipped to [1 - clip_low, 1 + clip_high], one of a whole sequence where `level` says so.

    `cap` bounds the unclipped ratio of tokens with a negative advantage. `mean` says what is divided by: the
    tokens of the batch, each sequence's own length and then their number, their number alone (`sum`), or `length` and
    their number.
    `mask` leaves tokens out on which generator and trainer disagree: IcePop where pi/mu is outside
    [mask_low, mask_high], DPPO where pi - mu exceeds `mask_difference` in the advantage's direction, IPO where it does
    in either direction. `drift` with weight `drift_coef` keeps pi near mu.
    `correction` weighs by old/mu, truncated at `correction_cap`.
    """

    surrogate: Surrogate = "clip"
    policy_coef: float = 1.0
    level: Level = "token"
    mean: Mean = "token"
    clip_low: float = 0.2
    clip_high: float = 0.2
    cap: float | None = None
    length: int | None = None
    mask: Mask = "none"
    mask_low: float = 0.125
    mask_high: float = 8.0
    mask_difference: float = 0.2
    correction: Correction = "none"
    correction_cap: float = 2.0
    kl: Divergence = "k3"
    kl_coef: float = 0.0
    drift: Drift = "squared"
    drift_coef: float = 0.0
    teacher_kl: TeacherKl = "k2"
    teacher_coef: float = 0.0
    jsd_alpha: float = 0.5
    entropy_coef: float = 0.0

    @property
    def has_beside(self) -> bool:
        """Whether tokens have a gradient beside that of their advantage."""
        return any((self.kl_coef, self.drift_coef, self.teacher_coef, self.entropy_coef))


@dataclass(frozen=True)
class Tokens:
    """The completion tokens of a micro-batch, one sequence after another; `owner` numbers their sequences.

    Every sequence is whole. `old` and `generator` carry no gradient; `advantages` has one number for each token.
    Generator and trainer are compared by the tokens that are `watched`, all of them by default. `teacher_top` has the
    teacher's log-probabilities of its likeliest tokens in each place, and `policy_top` the model's of the same ones.
    """

    logprobs: Tensor
    old: Tensor
    generator: Tensor
    advantages: Tensor
    owner: Tensor
    reference: Tensor | None = None
    teacher: Tensor | None = None
    entropies: Tensor | None = None
    watched: Tensor | None = None
    teacher_top: Tensor | None = None
    policy_top: Tensor | None = None


@dataclass(frozen=True)
class Normalizer:
    """The size of the whole batch of a step, over all micro-batches and ranks."""

    tokens: float
    sequences: float


@dataclass(frozen=True)
class Loss:
    """The share of a micro-batch in the batch's loss, and sums of metrics over its tokens (divide by `tokens`)."""

    value: Tensor
    sums: dict[str, Tensor]


def policy_loss(tokens: Tokens, settings: LossSettings, whole: Normalizer) -> Loss:
    """The loss of a micro-batch under the settings."""
    number, count = _sequences(tokens.owner)
    log_ratio = tokens.logprobs - tokens.old
    if settings.level == "sequence":
        log_ratio = sequence_mean(log_ratio, number, count)[number]
    terms, clipped = _surrogate(log_ratio, tokens, settings)
    kept = keep(tokens, settings)
    terms = terms * kept * correction(tokens.old - tokens.generator, number, count, settings)
    value = aggregate(settings.policy_coef * terms + beside(tokens, settings, kept), number, count, settings, whole)
    return Loss(value, metrics(tokens, log_ratio, clipped, kept, settings))


def beside(tokens: Tokens, settings: LossSettings, kept: Tensor) -> Tensor:
    """What is added to a token's term whatever it was rewarded with: divergences, and less its entropy."""
    extra = torch.zeros_like(tokens.logprobs)
    if settings.kl_coef:
        if tokens.reference is None:
            raise ValueError("a KL term needs the log-probabilities of a reference")
        extra = extra + settings.kl_coef * divergence(tokens.logprobs, tokens.reference, settings.kl)
    if settings.teacher_coef:
        extra = extra + settings.teacher_coef * teacher_divergence(tokens, settings)
    if settings.drift_coef:
        extra = extra + settings.drift_coef * drift(tokens, settings.drift, kept)
    if settings.entropy_coef:
        if tokens.entropies is None:
            raise ValueError("an entropy bonus needs entropies")
        extra = extra - settings.entropy_coef * tokens.entropies
    return extra


def teacher_divergence(tokens: Tokens, settings: LossSettings) -> Tensor:
    """How far each token's distribution is from the teacher's: on the sampled token, or over its likeliest ones."""
    if settings.teacher_kl in ("k2", "k3"):
        if tokens.teacher is None:
            raise ValueError("distillation needs the log-probabilities of a teacher")
        return divergence(tokens.logprobs, tokens.teacher, settings.teacher_kl)
    if tokens.policy_top is None or tokens.teacher_top is None:
        raise ValueError("distillation over likeliest tokens needs their log-probabilities")
    return top_divergence(tokens.policy_top, tokens.teacher_top, settings.teacher_kl, settings.jsd_alpha)


def top_divergence(policy: Tensor, teacher: Tensor, kind: TeacherKl, alpha: float) -> Tensor:
    """The divergence of two distributions over the teacher's likeliest tokens, from log-probabilities [tokens, k].

    q is the teacher's share of each among them, and p the model's probability, which is not made to add up to 1.
    forward: sum q log(q / p). jsd (Agarwal et al. 2024): a sum q log(q / m) + (1 - a) sum p log(p / m), where
    m = a q + (1 - a) p.
    """
    q = torch.softmax(teacher, -1)
    log_q = q.clamp_min(FLOOR).log()
    if kind == "forward":
        return (q * (log_q - policy)).sum(-1)
    p = policy.exp()
    log_m = (alpha * q + (1 - alpha) * p).clamp_min(FLOOR).log()
    of_policy = p * (p.clamp_min(FLOOR).log() - log_m)
    return (alpha * q * (log_q - log_m) + (1 - alpha) * of_policy).sum(-1)


def drift(tokens: Tokens, kind: Drift, kept: Tensor) -> Tensor:
    """How far each token's pi is from mu: log(r)^2, or r log r - r + 1 of the kept tokens, with r = pi/mu.

    The second is KL(pi || mu) as tokens of mu estimate it, importance-weighted, and its gradient is that of the KL.
    """
    log_ratio = tokens.logprobs - tokens.generator
    if kind == "squared":
        return log_ratio.square()
    ratio = log_ratio.exp()
    return (ratio * log_ratio - ratio + 1) * kept


def clip_terms(log_ratio: Tensor, advantages: Tensor, low: float, high: float, cap: float | None = None) -> Tensor:
    """-min(r A, clip(r, 1 - low, 1 + high) A): PPO (Schulman et al. 2017); apart, low and high are DAPO's clip-higher.

    `cap` bounds the first r from above, the dual clip of Ye et al. (2020).
    """
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - low, 1 + high)
    if cap is not None:
        ratio = ratio.clamp(max=cap)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def cispo_terms(log_ratio: Tensor, logprobs: Tensor, advantages: Tensor, high: float) -> Tensor:
    """-stop(min(r, 1 + high)) A log pi: every token keeps a gradient. CISPO (MiniMax 2025)."""
    return -log_ratio.exp().clamp(max=1 + high).detach() * advantages * logprobs


def reinforce_terms(log_ratio: Tensor, advantages: Tensor) -> Tensor:
    """-r A, whose gradient is that of the importance-weighted policy gradient."""
    return -log_ratio.exp() * advantages


def divergence(logprobs: Tensor, reference: Tensor, kind: Divergence) -> Tensor:
    """KL(pi || ref) as estimated at each token (Schulman 2020): -d, d^2/2 or e^d - d - 1, with d = log ref - log pi.

    As values k1 and k3 are right on average over pi's own tokens. As losses, whose gradient leaves out that other
    tokens become likely, only k2 has the gradient of KL(pi || ref); that of k3 is the gradient of KL(ref || pi), and
    that of k1 is zero, for which reason specs refuse it.
    """
    d = reference - logprobs
    if kind == "k1":
        return -d
    return d.square() / 2 if kind == "k2" else d.exp() - d - 1


def keep(tokens: Tokens, settings: LossSettings) -> Tensor:
    """1 for tokens that count and 0 for those that a mask leaves out."""
    with torch.no_grad():
        if settings.mask == "icepop":
            ratio = (tokens.logprobs - tokens.generator).exp()
            return ((ratio >= settings.mask_low) & (ratio <= settings.mask_high)).to(ratio.dtype)
        if settings.mask in ("dppo", "ipo"):
            difference = tokens.logprobs.exp() - tokens.generator.exp()
            directed = torch.where(tokens.advantages > 0, difference, -difference)
            ahead = directed if settings.mask == "dppo" else difference.abs()
            return (ahead <= settings.mask_difference).to(difference.dtype)
        return torch.ones_like(tokens.logprobs)


def correction(log_weight: Tensor, owner: Tensor, count: int, settings: LossSettings) -> Tensor:
    """min(old/mu, cap) of each token, or of the sequence's product: truncated importance sampling (Yao et al. 2025)."""
    if settings.correction == "none":
        return torch.ones_like(log_weight)
    with torch.no_grad():
        if settings.correction == "sequence":
            log_weight = sequence_sum(log_weight, owner, count)[owner]
        return log_weight.exp().clamp(max=settings.correction_cap)


def aggregate(terms: Tensor, owner: Tensor, count: int, settings: LossSettings, whole: Normalizer) -> Tensor:
    """The sum of a micro-batch's terms over the denominator of the whole batch."""
    if settings.mean == "sequence":
        return sequence_mean(terms, owner, count).sum() / whole.sequences
    if settings.mean == "token":
        return terms.sum() / whole.tokens
    if settings.mean == "sum":
        return terms.sum() / whole.sequences
    if settings.length is None:
        raise ValueError("a loss over a constant length needs that length")
    return terms.sum() / (settings.length * whole.sequences)


def metrics(
    tokens: Tokens, log_ratio: Tensor, clipped: Tensor, kept: Tensor, settings: LossSettings
) -> dict[str, Tensor]:
    """Sums over tokens: ratio, KL to the old and to the generator's model (k3), clipped and masked tokens, entropy."""
    with torch.no_grad():
        drift = tokens.logprobs - tokens.generator
        drift = drift if tokens.watched is None else drift[tokens.watched]
        found = {
            "tokens": torch.ones_like(kept).sum(),
            "ratio": log_ratio.exp().sum(),
            "kl": divergence(tokens.old, tokens.logprobs, "k3").sum(),
            "mismatch_kl": (drift.exp() - drift - 1).mean() * len(kept),
            "clipped": clipped.sum(),
            "masked": (1 - kept).sum(),
        }
        if tokens.reference is not None:
            found["reference_kl"] = divergence(tokens.logprobs, tokens.reference, "k3").sum()
        if tokens.teacher is not None:
            found["teacher_kl"] = divergence(tokens.logprobs, tokens.teacher, "k3").sum()
        if tokens.teacher_top is not None:
            found["teacher_kl"] = teacher_divergence(tokens, settings).sum()
        if tokens.entropies is not None:
            found["entropy"] = tokens.entropies.sum()
        return found


def sequence_sum(values: Tensor, owner: Tensor, count: int) -> Tensor:
    """The sum of each sequence's values."""
    return torch.zeros(count, dtype=values.dtype, device=values.device).index_add(0, owner, values)


def sequence_mean(values: Tensor, owner: Tensor, count: int) -> Tensor:
    """The mean of each sequence's values."""
    return sequence_sum(values, owner, count) / sequence_sum(torch.ones_like(values), owner, count)


def _sequences(owner: Tensor) -> tuple[Tensor, int]:
    """Sequences numbered from 0 within the micro-batch, and how many there are."""
    unique, number = torch.unique(owner, return_inverse=True)
    return number, len(unique)


def _surrogate(log_ratio: Tensor, tokens: Tokens, settings: LossSettings) -> tuple[Tensor, Tensor]:
    """The terms, and which tokens the clip holds back."""
    ratio, rising = log_ratio.detach().exp(), tokens.advantages > 0
    over, under = ratio > 1 + settings.clip_high, ratio < 1 - settings.clip_low
    if settings.surrogate == "cispo":
        return cispo_terms(log_ratio, tokens.logprobs, tokens.advantages, settings.clip_high), over
    if settings.surrogate == "reinforce":
        return reinforce_terms(log_ratio, tokens.advantages), torch.zeros_like(over)
    held = (over & rising) | (under & (tokens.advantages < 0))
    return clip_terms(log_ratio, tokens.advantages, settings.clip_low, settings.clip_high, settings.cap), held


MEANS = {"sequence_mean": "sequence", "sequence_sum": "sum", "token_mean": "token", "constant": "constant"}
CORRECTIONS = {"truncate": "token", "truncate_sequence": "sequence"}


def loss_settings(settings: VerifiedAlgorithm, frames: int) -> LossSettings:
    """The loss of an algorithm after so many frames."""
    masked = settings.importance if settings.importance in ("icepop", "dppo", "ipo") else "none"
    return LossSettings(
        surrogate="clip" if settings.loss == "gspo" else settings.loss,
        policy_coef=settings.policy_coef,
        level="sequence" if settings.loss == "gspo" else "token",
        mean=MEANS[settings.aggregate],  # pyright: ignore[reportArgumentType]
        clip_low=settings.clip_low,
        clip_high=settings.clip_high,
        length=settings.constant_length,
        mask=masked,
        mask_low=settings.importance_low,
        mask_high=settings.importance_high,
        mask_difference=settings.importance_difference,
        correction=CORRECTIONS.get(settings.importance, "none"),  # pyright: ignore[reportArgumentType]
        correction_cap=settings.importance_high,
        kl="k3" if settings.kl == "none" else settings.kl,
        kl_coef=settings.kl_coef,
        teacher_kl=settings.teacher_kl,
        teacher_coef=0.0 if settings.teacher is None else settings.teacher_coef,
        jsd_alpha=settings.jsd_alpha,
        drift=settings.mismatch_loss,
        drift_coef=settings.mismatch_coef,
        entropy_coef=value_at(settings.entropy_coef, frames),
    )
