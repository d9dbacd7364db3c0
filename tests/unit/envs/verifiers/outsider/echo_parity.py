"""An environment as an outsider would write it for verifiers' classic API: two turns, no word of Operant in it.

The policy is asked for a letter, is told whether it was early or late in the alphabet, and may answer once more.
"""

import verifiers as vf
from datasets import Dataset

LETTERS = "abcdef"


def load_environment(rows: int = 40, letters: str = LETTERS, max_turns: int = 2) -> vf.Environment:
    """Rows alternate between the letters that are wanted."""
    data = [
        {"prompt": [{"role": "user", "content": f"say {letters[i % len(letters)]}:"}], "answer": letters[i % len(letters)]}
        for i in range(rows)
    ]

    def right_letter(completion, answer) -> float:
        """The share of the replies that begin with the wanted letter."""
        said = [message["content"] or "" for message in completion if message["role"] == "assistant"]
        return sum(text.strip().startswith(answer) for text in said) / max(len(said), 1)

    def replies(completion) -> float:
        """How often the policy spoke."""
        return float(sum(message["role"] == "assistant" for message in completion))

    rubric = vf.Rubric(funcs=[right_letter, replies], weights=[1.0, 0.0])
    return EchoParity(dataset=Dataset.from_list(data), rubric=rubric, max_turns=max_turns)


class EchoParity(vf.MultiTurnEnv):
    """Answers with what was wanted, so that a second try can be better."""

    async def env_response(self, messages, state, **kwargs):
        return [{"role": "user", "content": f"again {state['answer']}:"}]
