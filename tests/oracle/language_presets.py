"""Losses by name, as papers and other trainers have them, to hold our formulas to."""

from __future__ import annotations

from dataclasses import replace

from operant.engines.language.learning.losses import LossSettings

PRESETS: dict[str, LossSettings] = {
    "grpo": LossSettings(mean="sequence"),
    "dr_grpo": LossSettings(mean="constant"),
    "dapo": LossSettings(mean="token", clip_high=0.28),
    "gspo": LossSettings(level="sequence", mean="sequence", clip_low=3e-4, clip_high=4e-4),
    "cispo": LossSettings(surrogate="cispo", mean="token", clip_high=4.0),
    "icepop": LossSettings(surrogate="reinforce", mask="icepop"),
    "dppo": LossSettings(surrogate="reinforce", mask="dppo", drift_coef=1e-3),
    "reinforce": LossSettings(surrogate="reinforce"),
}


def preset(name: str, **changes: object) -> LossSettings:
    """The settings of a named loss, with changes."""
    return replace(PRESETS[name], **changes)  # pyright: ignore[reportArgumentType]
