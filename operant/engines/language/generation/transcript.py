"""A dialogue as tokens: what a policy is asked with at each turn.

Tokens that the policy wrote stay the tokens that it wrote; only the words of others are ever turned into tokens. A
prompt therefore goes on exactly where the turn before ended, and one sample can hold a whole dialogue. Where a chat
template rewrites what was said (some drop earlier thoughts), that cannot be, and the prompt is rendered anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from operant.engines.language.generation.generator import Completion
from operant.engines.language.generation.stop_strings import StopStrings
from operant.engines.language.policy.chat_template import (
    Template,
    apply_template,
    bare_tokens,
    encode,
    uses_chat_template,
)
from operant.engines.language.policy.model import Policy
from operant.envs.text.dialogue import Message, as_chat
from operant.spec.settings.language import DialogueSpec


class Transcript:
    """All that was said in one rollout (final).

    With `anew` a chat template renders the whole conversation before every turn, as it would for any client. With a
    `history` only so many turns before the last stay in a prompt, beside the system message.
    """

    def __init__(
        self,
        policy: Policy,
        template: Template,
        opening: Sequence[Message],
        anew: bool = False,
        history: int | None = None,
    ) -> None:
        self.policy = policy
        self.anew = anew
        self.history = history
        self.chat = uses_chat_template(policy, template)
        self._said = as_chat(opening)
        self._shown = apply_template(self._said, policy) if self.chat else ""
        self.tokens = encode(self._shown if self.chat else _plain(opening), policy)

    def add(self, completion: Completion, messages: Sequence[Message]) -> None:
        """The policy's words and the answer to them."""
        if self.history is not None:
            answered = [*self._said, {"role": "assistant", "content": completion.text}, *as_chat(messages)]
            self._said = recent(answered, self.history)
            self.tokens = encode(
                apply_template(self._said, self.policy) if self.chat else _joined(self._said), self.policy
            )
            return
        if not self.chat:
            words = "".join(message.text for message in messages)
            self.tokens = (*self.tokens, *completion.tokens, *bare_tokens(words, self.policy))
            return
        head = self._shown + completion.text
        self._said = [*self._said, {"role": "assistant", "content": completion.text}, *as_chat(messages)]
        self._shown = apply_template(self._said, self.policy)
        if self.anew or not self._shown.startswith(head):
            self.tokens = encode(self._shown, self.policy)
        else:
            self.tokens = continued_tokens(self.policy, self.tokens, completion, self._shown[len(head) :])


def new_transcript(
    policy: Policy, template: Template, opening: Sequence[Message], settings: DialogueSpec
) -> Transcript:
    """An opening as the prompt of the first turn, and how later turns are added to it."""
    return Transcript(policy, template, opening, settings.strategy == "branching", settings.history)


def continued_tokens(policy: Policy, prompt: Sequence[int], completion: Completion, words: str) -> tuple[int, ...]:
    """The tokens of a prompt, of what the policy wrote after it, and of the words that follow.

    Where the words begin with what the policy's own tokens end with already (a stop string, which its text leaves
    out, or the end-of-text mark), it stands there once.
    """
    ended = completion.tokens[-1:] and completion.tokens[-1] in policy.eos_ids
    whole = StopStrings(policy.tokenizer).decode(completion.tokens[:-1] if ended else completion.tokens)
    rest = bare_tokens(words.removeprefix(whole[len(completion.text) :]), policy)
    follow = rest[1:] if ended and rest[:1] == completion.tokens[-1:] else rest
    return (*prompt, *completion.tokens, *follow)


def recent(said: Sequence[dict[str, str]], history: int) -> list[dict[str, str]]:
    """The system messages, the last message, and the `history` exchanges before it."""
    system = [each for each in said if each["role"] == "system"]
    others = [each for each in said if each["role"] != "system"]
    return [*system, *others[-(2 * history + 1) :]]


def _plain(messages: Sequence[Message]) -> str:
    """Messages for a model without a template."""
    return _joined([{"role": each.role, "content": each.text} for each in messages])


def _joined(said: Sequence[dict[str, str]]) -> str:
    """A system text stands apart, everything else follows as it is."""
    return "".join(f"{each['content']}\n\n" if each["role"] == "system" else each["content"] for each in said)
