"""Requests in OpenAI's words: what may be asked, and what is refused by the name of its field.

A field that this server does not know is refused too: to ignore it would answer another question than was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from operant.engines.language.completion import Prompt, Sampling
from operant.engines.language.generate import check_room
from operant.engines.language.prompts import Template, encode, speaks_chat, spoken
from operant.engines.language.tool_calls import calls_for_template
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.engines.language.model import Policy

COMPLETION_TOKENS = 16
"""What `/v1/completions` writes where nobody says how much, as OpenAI's does."""

Zero = Annotated[float, Field(ge=0, le=0, description="Only its default of 0.")]


class BadRequest(Exception):
    """A request that cannot be answered; `param` is the field that is to blame."""

    def __init__(self, message: str, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.param, self.status = message, param, status

    def as_dict(self) -> dict[str, Any]:
        """The error as OpenAI's clients expect it."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.status}}


class _Fields(BaseModel):
    """What both kinds of request may say (abstract)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = None
    n: int = Field(default=1, ge=1, le=4096)
    temperature: float = Field(default=1.0, ge=0, le=100)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=-1)
    max_tokens: int | None = Field(default=None, ge=0)
    stop: str | list[str] = Field(default_factory=list)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stream: bool = False
    stream_options: dict[str, Any] = Field(default_factory=dict)
    return_token_ids: bool = False
    user: str | None = None
    frequency_penalty: Zero = 0.0
    presence_penalty: Zero = 0.0


class CompletionFields(_Fields):
    """The body of `/v1/completions` (final)."""

    prompt: Any
    echo: bool = False
    logprobs: int | None = Field(default=None, ge=0, le=100)
    best_of: int | None = Field(default=None, ge=1, le=1)


class ChatFields(_Fields):
    """The body of `/v1/chat/completions` (final)."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    logprobs: bool = False
    top_logprobs: int = Field(default=0, ge=0, le=100)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    tools: list[dict[str, Any]] = Field(default_factory=list)
    tool_choice: Literal["auto", "none"] = "auto"
    parallel_tool_calls: bool = True

    @property
    def offered(self) -> list[dict[str, Any]]:
        """The tools that the policy may use."""
        return self.tools if self.tool_choice == "auto" else []


@dataclass(frozen=True)
class Query:
    """A request that can be answered.

    `logprobs` is None where they are not wanted, 0 for those of the text itself, k for the k likeliest as well.
    No completion is written where `writes` is false: only the prompt is looked at.
    """

    chat: bool
    prompts: tuple[Prompt, ...]
    sampling: Sampling
    seeded: bool
    logprobs: int | None = None
    echo: bool = False
    writes: bool = True
    stream: bool = False
    usage_streamed: bool = False
    token_ids: bool = False
    tools: bool = False


def read_query(body: Mapping[str, Any], chat: bool, policy: Policy, served: str, template: Template = "chat") -> Query:
    """The query that a JSON body holds; `BadRequest` names the field that is wrong."""
    fields = read_fields(body, chat)
    if fields.model not in (None, served):
        raise BadRequest(f"the model {fields.model!r} is not served here; there is {served!r}", "model", 404)
    query = _chat(fields, policy, template) if isinstance(fields, ChatFields) else _completion(fields, policy)
    if query.stream and (query.echo or query.logprobs or query.tools):
        raise BadRequest("a stream has no echo, likeliest tokens or tools; ask for them without stream", "stream")
    return query


@overload
def read_fields(body: Mapping[str, Any], chat: Literal[True]) -> ChatFields: ...
@overload
def read_fields(body: Mapping[str, Any], chat: bool) -> ChatFields | CompletionFields: ...
def read_fields(body: Mapping[str, Any], chat: bool) -> ChatFields | CompletionFields:
    """What a body says, nulls left out; `BadRequest` names the field that is wrong."""
    given = {key: value for key, value in body.items() if value is not None}
    try:
        return (ChatFields if chat else CompletionFields).model_validate(given)
    except ValidationError as problem:
        raise _named(problem) from None


def _named(problem: ValidationError) -> BadRequest:
    first = problem.errors()[0]
    place = ".".join(str(part) for part in first["loc"][:1])
    if first["type"] == "extra_forbidden":
        return BadRequest(f"{place}: this server has no such field", place)
    return BadRequest(f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}", place)


def _completion(fields: CompletionFields, policy: Policy) -> Query:
    most = COMPLETION_TOKENS if fields.max_tokens is None else fields.max_tokens
    if not most and not fields.echo:
        raise BadRequest("max_tokens: 0 writes nothing, which only makes sense with echo", "max_tokens")
    texts = _prompts(fields.prompt, policy)
    prompts = tuple(Prompt(tokens, most, stops_of(fields)) for tokens in texts)
    return _query(fields, policy, prompts, chat=False, logprobs=fields.logprobs, echo=fields.echo, writes=most > 0)


def _chat(fields: ChatFields, policy: Policy, template: Template) -> Query:
    if template == "chat" and not policy.has_chat_template:
        raise BadRequest(
            f"{policy.name} has no chat template; ask /v1/completions instead, or serve it with --template raw",
            "messages",
        )
    if fields.top_logprobs and not fields.logprobs:
        raise BadRequest("top_logprobs: needs logprobs to be true", "top_logprobs")
    tokens = encode(read_aloud(fields, policy, template), policy)
    asked = fields.max_completion_tokens or fields.max_tokens
    most = max(1, policy.context - len(tokens)) if asked is None else asked
    logprobs = fields.top_logprobs if fields.logprobs else None
    prompts = (Prompt(tokens, most, stops_of(fields)),)
    return _query(fields, policy, prompts, chat=True, logprobs=logprobs, tools=bool(fields.offered))


def read_aloud(fields: ChatFields, policy: Policy, template: Template) -> str:
    """The conversation of a request as the policy reads it, with the tools that it is offered."""
    if fields.offered and not speaks_chat(policy, template):
        raise BadRequest(f"tools: {policy.name} has no chat template that could tell it of them", "tools")
    return spoken([turn_of(turn) for turn in fields.messages], policy, template, fields.offered)


def _query(fields: _Fields, policy: Policy, prompts: tuple[Prompt, ...], **rest: Any) -> Query:
    try:
        if rest.get("writes", True):
            check_room(prompts, policy.context)
    except UsageError as problem:
        raise BadRequest(problem.cause, "messages" if rest["chat"] else "prompt") from None
    sampling = Sampling(fields.n, fields.temperature, fields.top_p, max(0, fields.top_k), fields.seed or 0)
    return Query(
        prompts=prompts,
        sampling=sampling,
        seeded=fields.seed is not None,
        stream=fields.stream,
        usage_streamed=bool(fields.stream_options.get("include_usage")),
        token_ids=fields.return_token_ids,
        **rest,
    )


def _prompts(given: Any, policy: Policy) -> list[tuple[int, ...]]:
    """A text, tokens, or a list of either."""
    several = isinstance(given, list) and bool(given) and not isinstance(given[0], int)
    each = given if several else [given]
    return [_tokens(one, policy) for one in each]


def _tokens(given: Any, policy: Policy) -> tuple[int, ...]:
    if isinstance(given, str):
        tokens: Sequence[Any] = encode(given, policy)
    elif isinstance(given, list):
        tokens = given
    else:
        raise BadRequest("prompt: must be a text, a list of token ids, or a list of either", "prompt")
    if not tokens:
        raise BadRequest("prompt: is empty", "prompt")
    size = int(policy.model.config.get_text_config().vocab_size)
    for token in tokens:
        if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < size:
            raise BadRequest(f"prompt: {token!r} is no token id from 0 to {size - 1}", "prompt")
    return tuple(tokens)


def stops_of(fields: _Fields) -> tuple[str, ...]:
    """The texts after which a completion ends."""
    stops = (fields.stop,) if isinstance(fields.stop, str) else tuple(fields.stop)
    if not all(stops):
        raise BadRequest("stop: an empty text would end everything", "stop")
    return stops


def turn_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message whose content is text, in one piece or in parts; beside calls of tools there need be none."""
    role, content, calls = message.get("role"), message.get("content"), calls_for_template(message)
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
    content = "" if content is None and calls else content
    if not isinstance(role, str) or not isinstance(content, str):
        raise BadRequest("messages: each needs a role and a content of text", "messages")
    return {"role": role, "content": content, **({"tool_calls": calls} if calls else {})}
