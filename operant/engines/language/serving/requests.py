"""Request schemas in OpenAI's words: what may be asked, and what is refused by the name of its field.

A field that this server does not know is refused too: to ignore it would answer another question than was asked. What
would cost too much is refused before it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from jinja2 import TemplateError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import from_json

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.sampling import SMALLEST, check_room
from operant.engines.language.policy.chat_template import (
    Template,
    bare_tokens,
    encode,
    render_turns,
    uses_chat_template,
)
from operant.engines.language.policy.tool_calls import calls_for_template
from operant.errors import UsageError
from operant.web.access import RequestError

if TYPE_CHECKING:
    from operant.engines.language.policy.model import Policy

COMPLETION_TOKENS = 16
"""What `/v1/completions` writes where nobody says how much, as OpenAI's does."""
MOST_CHOICES = 16_384
MOST_TOKENS = 1 << 22
"""Of one request: tokens read and written, each log-probability beside them counted like a token."""
SLICE, CUT_TOKENS = 16_384, 64
"""A long text is counted in slices of so many characters; a cut makes at most so many tokens more."""
CONTEXT = "this model's maximum context length is {context} tokens, and the prompt has {length}"


def _zero_or_sizable(value: float) -> float:
    if value and value < SMALLEST:
        raise ValueError(f"must be 0, or {SMALLEST} and more")
    return value


Zero = Annotated[float, Field(ge=0, le=0, description="Only its default of 0.")]
Stop = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class _Fields(BaseModel):
    """What both kinds of request may say (abstract)."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: str | None = None
    n: int = Field(default=1, ge=1, le=4096)
    temperature: Annotated[float, Field(ge=0, le=100), AfterValidator(_zero_or_sizable)] = 1.0
    top_p: float = Field(default=1.0, ge=SMALLEST, le=1)
    top_k: int = Field(default=0, ge=-1, lt=2**31)
    min_p: float = Field(default=0.0, ge=0, le=1)
    max_tokens: int | None = Field(default=None, ge=0, lt=2**31)
    stop: Stop | Annotated[list[Stop], Field(max_length=64)] = Field(default_factory=list)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stream: bool = False
    stream_options: dict[str, Any] = Field(default_factory=dict)
    return_token_ids: bool = False
    user: str | None = None
    frequency_penalty: Zero = 0.0
    presence_penalty: Zero = 0.0

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts after which a completion ends."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)


class CompletionFields(_Fields):
    """The body of `/v1/completions` (final)."""

    prompt: Any
    echo: bool = False
    logprobs: int | None = Field(default=None, ge=0, le=100)
    best_of: int | None = Field(default=None, ge=1, le=1)
    return_sampling_mask: bool = False


class ChatFields(_Fields):
    """The body of `/v1/chat/completions` (final)."""

    messages: list[dict[str, Any]] = Field(min_length=1, max_length=16_384)
    logprobs: bool = False
    top_logprobs: int = Field(default=0, ge=0, le=100)
    max_completion_tokens: int | None = Field(default=None, ge=1, lt=2**31)
    tools: list[dict[str, Any]] = Field(default_factory=list, max_length=1024)
    tool_choice: Literal["auto", "none"] = "auto"
    parallel_tool_calls: bool = True

    @property
    def offered(self) -> list[dict[str, Any]]:
        """The tools that the policy may use."""
        return self.tools if self.tool_choice == "auto" else []


@dataclass(frozen=True)
class GenerationRequest:
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

    @property
    def rescores(self) -> bool:
        """Whether log-probabilities are asked for that writing the completions does not give."""
        return self.logprobs is not None and bool(self.echo or self.logprobs)


def read_json(data: bytes) -> dict[str, Any]:
    """The JSON object that is a body; what is nested too deeply, or no Unicode, is none."""
    try:
        body = from_json(data, allow_inf_nan=False, cache_strings=False)
    except ValueError as problem:
        raise RequestError(f"the body is no JSON: {problem}") from None
    if not isinstance(body, dict):
        raise RequestError("the body must be a JSON object")
    return body


def read_request(
    body: Mapping[str, Any], chat: bool, policy: Policy, served: str, template: Template = "chat"
) -> GenerationRequest:
    """The request that a JSON body holds; `RequestError` names the field that is wrong."""
    fields = read_fields(body, chat)
    if fields.model not in (None, served):
        raise RequestError(f"the model {fields.model[:100]!r} is not served here; there is {served!r}", "model", 404)
    request = _chat(fields, policy, template) if isinstance(fields, ChatFields) else _completion(fields, policy)
    masks = request.sampling.masks
    if request.stream and (request.echo or request.logprobs or request.tools or masks):
        words = "a stream has no echo, likeliest tokens, sampling masks or tools; ask for them without stream"
        raise RequestError(words, "stream")
    if masks and request.rescores:
        raise RequestError("return_sampling_mask: goes with logprobs 0 and no echo", "return_sampling_mask")
    return request


@overload
def read_fields(body: Mapping[str, Any], chat: Literal[True]) -> ChatFields: ...
@overload
def read_fields(body: Mapping[str, Any], chat: bool) -> ChatFields | CompletionFields: ...
def read_fields(body: Mapping[str, Any], chat: bool) -> ChatFields | CompletionFields:
    """What a body says, nulls left out; `RequestError` names the field that is wrong."""
    given = {key: value for key, value in body.items() if value is not None}
    try:
        return (ChatFields if chat else CompletionFields).model_validate(given)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
        place = str(first["loc"][0])[:100]
        if first["type"] == "extra_forbidden":
            raise RequestError(f"{place}: this server has no such field", place) from None
        words = first["msg"].removeprefix("Value error, ")
        raise RequestError(f"{place}: {words[0].lower()}{words[1:]}", place) from None


def _completion(fields: CompletionFields, policy: Policy) -> GenerationRequest:
    most = COMPLETION_TOKENS if fields.max_tokens is None else fields.max_tokens
    if not most and not fields.echo:
        raise RequestError("max_tokens: 0 writes nothing, which only makes sense with echo", "max_tokens")
    prompts = tuple(Prompt(tokens, most, fields.stops) for tokens in _prompts(fields, policy))
    return _checked(fields, policy, prompts, chat=False, logprobs=fields.logprobs, echo=fields.echo, writes=most > 0)


def _chat(fields: ChatFields, policy: Policy, template: Template) -> GenerationRequest:
    if template == "chat" and not policy.has_chat_template:
        raise RequestError(
            f"{policy.name} has no chat template; ask /v1/completions instead, or serve it with --template raw",
            "messages",
        )
    if fields.top_logprobs and not fields.logprobs:
        raise RequestError("top_logprobs: needs logprobs to be true", "top_logprobs")
    tokens = encode(chat_text(fields, policy, template), policy)
    asked = fields.max_completion_tokens or fields.max_tokens
    most = max(1, policy.context - len(tokens)) if asked is None else asked
    logprobs = fields.top_logprobs if fields.logprobs else None
    prompts = (Prompt(tokens, most, fields.stops),)
    return _checked(fields, policy, prompts, chat=True, logprobs=logprobs, tools=bool(fields.offered))


def chat_text(fields: ChatFields, policy: Policy, template: Template) -> str:
    """The conversation of a request as the policy reads it, with the tools that it is offered."""
    if fields.offered and not uses_chat_template(policy, template):
        raise RequestError(f"tools: {policy.name} has no chat template that could tell it of them", "tools")
    turns = [turn_of(turn) for turn in fields.messages]
    try:
        text = render_turns(turns, policy, template, fields.offered)
    except (
        TemplateError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as problem:
        raise RequestError(f"messages: the model's chat template refuses them: {problem}", "messages") from None
    check_length(text, policy, "messages")
    return text


def check_length(text: str, policy: Policy, param: str) -> None:
    """Refuse a text that is far too long, at the cost of making a little more tokens than the context has."""
    if len(text) <= max(SLICE, 4 * policy.context):
        return
    least = 0
    for start in range(0, len(text), SLICE):
        least += len(bare_tokens(text[start : start + SLICE], policy)) - CUT_TOKENS
        if least > policy.context:
            raise RequestError(CONTEXT.format(context=policy.context, length=f"at least {least}"), param)


def _checked(fields: _Fields, policy: Policy, prompts: tuple[Prompt, ...], **rest: Any) -> GenerationRequest:
    """The request, if the context has room for it and it does not cost too much."""
    place, values = "messages" if rest["chat"] else "prompt", 1 + (rest["logprobs"] or 0)
    try:
        if rest.get("writes", True):
            check_room(prompts, policy.context)
    except UsageError as problem:
        raise RequestError(problem.cause, place) from None
    cost = sum(len(each.tokens) + fields.n * each.max_tokens for each in prompts) * values
    if cost > MOST_TOKENS or len(prompts) * fields.n > MOST_CHOICES:
        raise RequestError(
            f"{place}: asks for {len(prompts) * fields.n:,} completions and {cost:,} tokens and log-probabilities in "
            f"one request, of at most {MOST_CHOICES:,} and {MOST_TOKENS:,}",
            place,
        )
    return GenerationRequest(
        prompts=prompts,
        sampling=Sampling(
            fields.n,
            fields.temperature,
            fields.top_p,
            max(0, fields.top_k),
            fields.seed or 0,
            min_p=fields.min_p,
            keep_mask=isinstance(fields, CompletionFields) and fields.return_sampling_mask,
        ),
        seeded=fields.seed is not None,
        stream=fields.stream,
        usage_streamed=bool(fields.stream_options.get("include_usage")),
        token_ids=fields.return_token_ids,
        **rest,
    )


def _prompts(fields: CompletionFields, policy: Policy) -> list[tuple[int, ...]]:
    """The tokens of a text, of token ids, or of each in a list of either."""
    given, found, total = fields.prompt, list[tuple[int, ...]](), 0
    several = isinstance(given, list) and bool(given) and not isinstance(given[0], int)
    for one in given if several else [given]:
        found.append(_tokens(one, policy))
        total += len(found[-1])
        if total > MOST_TOKENS or len(found) > MOST_CHOICES:
            raise RequestError(f"prompt: at most {MOST_CHOICES:,} prompts of {MOST_TOKENS:,} tokens in all", "prompt")
    return found


def _tokens(given: Any, policy: Policy) -> tuple[int, ...]:
    if isinstance(given, str):
        check_length(given, policy, "prompt")
        tokens: Sequence[Any] = encode(given, policy)
    elif isinstance(given, list):
        tokens = given
    else:
        raise RequestError("prompt: must be a text, a list of token ids, or a list of either", "prompt")
    if not tokens:
        raise RequestError("prompt: is empty", "prompt")
    if len(tokens) > policy.context + 1:  # the last token of a text that is only looked at is never read
        raise RequestError(CONTEXT.format(context=policy.context, length=len(tokens)), "prompt")
    size = int(policy.model.config.get_text_config().vocab_size)
    for token in tokens:
        if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < size:
            raise RequestError(f"prompt: {str(token)[:40]!r} is no token id from 0 to {size - 1}", "prompt")
    return tuple(tokens)


def turn_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message whose content is text, in one piece or in parts; beside calls of tools there need be none."""
    role, content = message.get("role"), message.get("content")
    try:
        calls = calls_for_template(message)
    except (AttributeError, TypeError, ValueError):
        raise RequestError("messages: tool_calls must be a list of calls of functions", "messages") from None
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
    content = "" if content is None and calls else content
    if not isinstance(role, str) or not isinstance(content, str):
        raise RequestError("messages: each needs a role and a content of text", "messages")
    return {"role": role, "content": content, **({"tool_calls": calls} if calls else {})}
