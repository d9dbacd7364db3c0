"""An environment as an outsider would write it for verifiers' classic API: two turns, and no word of Operant in it.

The policy is asked for letters of one half of the alphabet, and then once more.
"""

import verifiers as vf
from datasets import Dataset

HALVES = {"early": "abcdefghijklm", "late": "nopqrstuvwxyz"}


def load_environment(rows: int = 60, halves: list[str] | None = None, max_turns: int = 2) -> vf.Environment:
    """Rows alternate between the halves that are asked for."""
    asked = halves or list(HALVES)
    data = [
        {"prompt": [{"role": "user", "content": f"{asked[row % len(asked)]}:"}], "answer": asked[row % len(asked)]}
        for row in range(rows)
    ]

    def in_half(completion, answer) -> float:
        """The share of what was said that lies in the wanted half."""
        said = "".join(message["content"] or "" for message in completion if message["role"] == "assistant")
        return sum(letter in HALVES[answer] for letter in said) / max(len(said), 1)

    def replies(completion) -> float:
        """How often the policy spoke."""
        return float(sum(message["role"] == "assistant" for message in completion))

    rubric = vf.Rubric(funcs=[in_half, replies], weights=[1.0, 0.0])
    return HalfAlphabet(dataset=Dataset.from_list(data), rubric=rubric, max_turns=max_turns)


class HalfAlphabet(vf.MultiTurnEnv):
    """Asks again in other words."""

    async def env_response(self, messages, state, **kwargs):
        if len(state["trajectory"]) > 1:
            raise vf.InfraError("asked too often")
        return [vf.UserMessage(content=f"more {state['answer']}:")]
