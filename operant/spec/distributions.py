"""The distributions that a search can draw a setting from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

INTERVAL = ("low", "high")
STEPPED = ("low", "high", "q")
BELL = ("mean", "sd")
MAX_CHOICES = 1000

PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": INTERVAL,
    "quniform": STEPPED,
    "loguniform": INTERVAL,
    "qloguniform": STEPPED,
    "randint": INTERVAL,
    "qrandint": STEPPED,
    "lograndint": INTERVAL,
    "qlograndint": STEPPED,
    "normal": BELL,
    "qnormal": (*BELL, "q"),
    "choice": ("values",),
}
ALIASES = {"randn": "normal", "qrandn": "qnormal"}
ABOUT: dict[str, str] = {
    "uniform": "A number between low and high.",
    "quniform": "A number between low and high, rounded to a multiple of q.",
    "loguniform": "A number between low and high, as likely in each decade.",
    "qloguniform": "As loguniform, rounded to a multiple of q.",
    "randint": "A whole number from low up to, but not including, high.",
    "qrandint": "As randint, rounded to a multiple of q.",
    "lograndint": "As randint, as likely in each decade.",
    "qlograndint": "As lograndint, rounded to a multiple of q.",
    "normal": "A number from the normal distribution of this mean and deviation; also called randn.",
    "qnormal": "As normal, rounded to a multiple of q; also called qrandn.",
    "choice": "One of the values listed.",
}


@dataclass(frozen=True)
class Distribution:
    """A kind of draw and its parameters: the listed values for a choice, numbers otherwise."""

    kind: str
    parameters: tuple[Any, ...]

    def draw(self, rng: Random) -> Any:
        """One value. The same state of `rng` gives the same value."""
        if self.kind == "choice":
            return rng.choice(self.parameters)
        if "normal" in self.kind:
            return self.rounded(rng.gauss(self.parameters[0], self.parameters[1]))
        low, high = self.parameters[:2]
        if "log" in self.kind:
            value = min(max(math.exp(rng.uniform(math.log(low), math.log(high))), low), high)
        else:
            value = rng.uniform(low, high)
        if "randint" in self.kind:
            value = min(math.floor(value), high - 1)
        return min(max(self.rounded(value), low), high)

    def rounded(self, value: float) -> float:
        """The multiple of q next to the value, whole where every parameter is whole."""
        if not self.kind.startswith("q"):
            return value
        step = self.parameters[-1]
        multiple = float(f"{round(value / step) * step:.12g}")
        return int(multiple) if all(isinstance(each, int) for each in self.parameters) else multiple

    def listed(self) -> list[Any] | None:
        """Every value that can be drawn, where they can be listed: those of choices, whole numbers and steps of q."""
        if self.kind == "choice":
            return list(self.parameters)
        if "normal" in self.kind or not (self.kind.startswith("q") or "randint" in self.kind):
            return None
        low, high = self.parameters[:2]
        step = self.parameters[-1] if self.kind.startswith("q") else 1
        last = high - 1 if "randint" in self.kind else high
        first = math.ceil(low / step - 1e-9)
        count = math.floor(last / step + 1e-9) - first + 1
        return [self.rounded((first + k) * step) for k in range(count)] if 0 < count <= MAX_CHOICES else None

    def probes(self) -> list[Any]:
        """Values that between them show whether all draws can fit: every end, every choice, some draws."""
        if self.kind == "choice":
            return list(self.parameters)
        rng = Random(0)
        drawn = [self.draw(rng) for _ in range(16)]
        if "normal" in self.kind:
            return drawn
        low, high = self.parameters[:2]
        return [low, high - 1 if "randint" in self.kind else high, *drawn]


def fault_in(kind: str, parameters: Sequence[Any]) -> str | None:
    """What is wrong with a distribution's parameters, if anything."""
    if kind == "choice" and len(parameters) > MAX_CHOICES:
        return f"lists {len(parameters):,} values, and can list at most {MAX_CHOICES:,}"
    if kind == "choice":
        return None if parameters else "lists no values"
    names = PARAMETERS[kind]
    if len(parameters) != len(names):
        return f"takes [{', '.join(names)}]"
    if not all(_is_finite_number(each) for each in parameters):
        return f"takes numbers: [{', '.join(names)}]"
    values = dict(zip(names, parameters, strict=True))
    if "randint" in kind and not all(isinstance(each, int) for each in parameters):
        return "takes whole numbers"
    if values.get("q", 1) <= 0 or values.get("sd", 1) <= 0:
        return f"needs {'q' if values.get('q', 1) <= 0 else 'sd'} above 0"
    if "low" in values and values["low"] >= values["high"]:
        return f"needs low = {values['low']} below high = {values['high']}"
    return f"needs low = {values['low']} above 0" if "log" in kind and values["low"] <= 0 else None


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
