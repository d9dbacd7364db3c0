"""What the native spec offers, asked of its own classes: a setting that one gains is taken over from then on."""

from __future__ import annotations

from operant.spec import algorithms
from operant.spec.dialects.ledger import Section

NATIVE = "agent.algorithm"


def offers(algorithm: str, setting: str) -> bool:
    """Whether a native algorithm has a setting of this name."""
    model = algorithms.ALGORITHMS.get(algorithm)
    return model is not None and setting in model.model_fields


def copy_if_offered(settings: Section, algorithm: str, keys: dict[str, str], off: object = False) -> None:
    """Take over each key under its native name; a loss where there is none and the key says anything but `off`."""
    for key, native in keys.items():
        if offers(algorithm, native):
            settings.copy(key, f"{NATIVE}.{native}")
        elif settings.get(key, off) != off:
            settings.ledger.lose(settings.at(key), f"has no counterpart: {algorithm} has no such setting")
