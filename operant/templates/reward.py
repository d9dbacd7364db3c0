"""A reward function of my own, for any language task: what a completion is worth beside what its verifier says.

    operant check --contract my_reward:my_reward    does a run with it keep what Operant promises?
    operant train my_reward.yaml                    trains a tiny model from scratch with it
    operant help reward my_reward:my_reward         its settings

In a spec it is one of env.text.reward_functions, by its module and name, with a weight and its settings:
{name: "my_reward:my_reward", weight: 0.2, target: 8}. With env.text.verifier_weight: 0 the verifier's score does not
count.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field


# A parameter with one of these names is what the function wants to see, in any order and number:
#   prompt, completion, answer (of the problem), conversation (a list of {"role", "content"}), length (in tokens),
#   score (the verifier's). With their plurals it gets lists, of all completions to one problem, and returns a list.
# Every other parameter is a setting; `Annotated` may give it limits and a line for `operant help`.
def my_reward(
    completion: str,
    score: float,
    *,
    target: Annotated[int, Field(ge=1, description="Characters that cost nothing.")] = 40,
) -> float:
    """Take from a right answer what it has beyond `target` characters, in proportion.

    It runs in worker processes with a time limit (env.text.seconds). What it raises, or returns instead of a finite
    number, is counted and told, and adds 0. The same completion must always be worth the same: draw no random numbers.
    """
    excess = max(len(completion) - target, 0)
    return -min(excess / target, 1.0) if score == 1 else 0.0
