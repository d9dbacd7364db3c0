"""A spec's words for the loss, as the losses themselves take them."""

from __future__ import annotations

from operant.engines.language.learning.losses import LossSettings
from operant.spec.fields import value_at
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

MEANS = {"sequence_mean": "sequence", "sequence_sum": "sum", "token_mean": "token", "constant": "constant"}
CORRECTIONS = {"truncate": "token", "truncate_sequence": "sequence"}


def loss_settings(settings: VerifiedAlgorithm, frames: int) -> LossSettings:
    """The loss of an algorithm after so many frames."""
    masked = settings.importance if settings.importance in ("icepop", "dppo") else "none"
    return LossSettings(
        surrogate="clip" if settings.loss == "gspo" else settings.loss,
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
        square_coef=settings.mismatch_coef,
        entropy_coef=value_at(settings.entropy_coef, frames),
    )
