"""Problems become prompts in tokens: by the model's chat template where it has one, as plain text where it has none.

A base model shown a chat template answers with noise, and a chat model without one answers worse than it can, so
the choice is made here, once, for training and evaluation alike. Where the tokenizer begins texts with a
begin-of-text token, it stands there once: a template that writes it itself is not given another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from operant.envs.text.well_formed import well_formed
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.engines.language.policy.model import Policy
    from operant.envs.text.task import Problem

Template = Literal["auto", "chat", "raw"]


def as_text(problem: Problem, policy: Policy, template: Template = "auto") -> str:
    """The text whose tokens are the prompt of a problem, up to the answer's beginning."""
    return _chat_text(problem, policy) if uses_chat_template(policy, template) else _raw_text(problem)


def uses_chat_template(policy: Policy, template: Template) -> bool:
    """Whether prompts are wrapped in the model's chat template."""
    if template == "chat" and not policy.has_chat_template:
        raise UsageError(
            f"model {policy.name} has no chat template, so it would be shown marks that it was not trained on",
            remedy="set the prompt template to auto or raw",
        )
    return policy.has_chat_template if template == "auto" else template == "chat"


def apply_template(turns: Sequence[Mapping[str, Any]], policy: Policy, tools: Sequence[Mapping[str, Any]] = ()) -> str:
    """Turns of a conversation by the model's chat template, the mark of the answer's beginning at the end."""
    wishes: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "tools": list(tools) or None}
    return str(policy.tokenizer.apply_chat_template(list(turns), **wishes))  # pyright: ignore[reportArgumentType]


def render_turns(
    turns: Sequence[Mapping[str, Any]],
    policy: Policy,
    template: Template = "auto",
    tools: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Turns of a conversation as the policy reads them: by its chat template, or their plain words one after the other.

    Plain words are those of a problem with the same system text and prompt; what the policy said ends as it would
    have ended it.
    """
    if uses_chat_template(policy, template):
        return apply_template(turns, policy, tools)
    after = {"system": "\n\n", "assistant": str(policy.tokenizer.eos_token or "")}
    return "".join(turn["content"] + after.get(turn["role"], "") for turn in turns)


def encode(text: str, policy: Policy) -> tuple[int, ...]:
    """Tokens of a text, with the begin-of-text token exactly once where the model has one."""
    ids, begin = bare_tokens(text, policy), policy.bos_id
    return ids if begin is None or ids[:1] == (begin,) else (begin, *ids)


def bare_tokens(text: str, policy: Policy) -> tuple[int, ...]:
    """Tokens of a text that stands after others; a client of ours may send one that no tokenizer takes."""
    return tuple(int(token) for token in policy.tokenizer(well_formed(text), add_special_tokens=False).input_ids)


def _chat_text(problem: Problem, policy: Policy) -> str:
    """System text and prompt as turns, then the beginning of the answer."""
    turns = [{"role": "user", "content": problem.prompt}]
    if problem.system:
        turns.insert(0, {"role": "system", "content": problem.system})
    return apply_template(turns, policy) + problem.prefix


def _raw_text(problem: Problem) -> str:
    """System text, prompt and the beginning of the answer, one after the other."""
    head = f"{problem.system}\n\n" if problem.system else ""
    return head + problem.prompt + problem.prefix
