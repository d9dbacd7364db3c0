"""Reward functions of my own, for any language task, beside its verifier or in its place.

In a spec:

    env:
      name: copy
      text:
        reward_functions:
          - {name: "my_rewards:brevity", weight: 0.2, target: 8}
          - {name: "my_rewards:variety", weight: 0.1}

A parameter named prompt, completion, answer, conversation, length or score is what the function wants to see; every
other one is a setting, which the spec may give. The same seed must give the same values, so draw no random numbers.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field


def brevity(
    completion: str,
    score: float,
    *,
    target: Annotated[int, Field(ge=1, description="Characters that cost nothing.")] = 40,
) -> float:
    """Take from a right answer what it has beyond `target` characters, in proportion."""
    excess = max(len(completion) - target, 0)
    return -min(excess / target, 1.0) if score == 1 else 0.0


def variety(completions: list[str]) -> list[float]:
    """With plural names: all completions to one problem at once, here to pay those that no other repeats."""
    count = Counter(completions)
    return [1.0 if count[each] == 1 else 0.0 for each in completions]
