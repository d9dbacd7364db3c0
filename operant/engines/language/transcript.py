"""A dialogue as tokens: what a policy is asked with at each turn.

Tokens that the policy wrote stay the tokens that it wrote; only the words of others are ever turned into tokens. A
prompt therefore goes on exactly where the turn before ended, and one sample can hold a whole dialogue. Where a chat
template rewrites what was said (some drop earlier thoughts), that cannot be, and the prompt is rendered anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from operant.engines.language.completion import Completion
from operant.engines.language.model import Policy
from operant.engines.language.prompts import Template, conversation, encode, speaks_chat
from operant.envs.text.dialogue import Message


class Transcript:
    """All that was said in one rollout (final).

    With `anew` a chat template renders the whole conversation before every turn, as it would for any client.
    """

    def __init__(self, policy: Policy, template: Template, opening: Sequence[Message], anew: bool = False) -> None:
        self.policy = policy
        self.anew = anew
        self.chat = speaks_chat(policy, template)
        self._said = _merged(opening)
        self._shown = conversation(self._said, policy) if self.chat else ""
        self.tokens = encode(self._shown if self.chat else _plain(opening), policy)

    def add(self, completion: Completion, messages: Sequence[Message]) -> None:
        """The policy's words and the answer to them."""
        written = self.tokens + completion.tokens
        if not self.chat:
            self.tokens = written + self._encoded("".join(message.text for message in messages))
            return
        head = self._shown + completion.text
        self._said = [*self._said, {"role": "assistant", "content": completion.text}, *_merged(messages)]
        self._shown = conversation(self._said, self.policy)
        if self.anew or not self._shown.startswith(head):
            self.tokens = encode(self._shown, self.policy)
        else:
            rest = self._shown[len(head) :].removeprefix(self._end_of(completion))
            self.tokens = written + self._encoded(rest)

    def _end_of(self, completion: Completion) -> str:
        """The end-of-text mark that the policy wrote itself, which the template need not write again."""
        last = completion.tokens[-1:]
        return str(self.policy.tokenizer.decode(list(last))) if set(last) & set(self.policy.eos_ids) else ""

    def _encoded(self, text: str) -> tuple[int, ...]:
        return tuple(int(token) for token in self.policy.tokenizer(text, add_special_tokens=False).input_ids)


def _merged(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages for a chat template: the world speaks as the user, and in one message at a time."""
    turns: list[dict[str, str]] = []
    for message in messages:
        role = "user" if message.role == "tool" else message.role
        if turns and turns[-1]["role"] == role:
            turns[-1] = {"role": role, "content": f"{turns[-1]['content']}\n{message.text}"}
        else:
            turns.append({"role": role, "content": message.text})
    return turns


def _plain(messages: Sequence[Message]) -> str:
    """Messages for a model without a template: a system text stands apart, everything else follows as it is."""
    return "".join(f"{each.text}\n\n" if each.role == "system" else each.text for each in messages)
