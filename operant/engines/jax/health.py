"""Alerts of a policy that goes wrong while its rows still look like numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from operant.envs.functional.env import Continuous, Discrete
from operant.run.progress import Progress

COLLAPSED = 0.01  # of the largest entropy that the actions allow
LARGEST_KL = 0.2  # per update; 0.03 to 0.05 are healthy
LARGEST_CLIP = 0.5  # share of samples; 0.2 to 0.25 are healthy


class Health:
    """Looks at metric rows, and tells of each thing that is wrong once."""

    def __init__(self, actions: Discrete | Continuous, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._told: set[str] = set()
        self._least_entropy = COLLAPSED * math.log(actions.n) if isinstance(actions, Discrete) else None

    def look(self, at: Progress, row: Mapping[str, float | None]) -> None:
        """Alert a person to what this row shows."""
        entropy, kl, clipped = (row.get(f"policy/{name}") for name in ("entropy", "kl", "clip_fraction"))
        if self._least_entropy is not None and entropy is not None and entropy < self._least_entropy:
            self._alert("entropy", at, f"policy/entropy is {entropy:.2g}: play has stopped exploring", "entropy_coef")
        if kl is not None and kl > LARGEST_KL:
            self._alert("kl", at, f"policy/kl is {kl:.2g}, healthy up to 0.05: updates go too far", "optimizer.lr")
        if clipped is not None and clipped > LARGEST_CLIP:
            words = f"policy/clip_fraction is {clipped:.2g}, healthy up to 0.25: most samples teach nothing"
            self._alert("clip", at, words, "training_epoch or optimizer.lr")

    def _alert(self, kind: str, at: Progress, words: str, setting: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            advice = "raise" if kind == "entropy" else "lower"
            self._tell("health", f"{words} (frame {at.frames:,}); {advice} {setting}")
