"""A generator that asks an OpenAI-compatible server: tokens go in, tokens and their log-probabilities come out.

Text is never made into tokens again, so a server that does not give its token ids is refused at the start.
"""

from __future__ import annotations

import tempfile
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.engines.language.generation.generator import Completion, Probe, Prompt, Sampling
from operant.engines.language.generation.http_client import Client
from operant.engines.language.generation.sampling import check_sampling
from operant.engines.language.policy.chat_template import encode
from operant.engines.language.policy.fingerprint import Fingerprint
from operant.engines.language.policy.sampling_mask import SamplingMask
from operant.engines.language.policy.weights import plain_weights
from operant.errors import RunError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.policy.model import Policy

CONNECTIONS = 4
PROMPTS_AT_ONCE = 256
TOKENS_AT_ONCE = 1 << 18
"""Read and written in one request, so that its body and its reply stay small; a server has limits for both."""
PROBE = "Operant counts: 1, 2, 3."


class RemoteGenerator:
    """Writes completions with a server that has the same tokens as the policy (final).

    Where the server is ours and was started with --allow-load, `load` gives it the policy's weights through a folder
    that both can reach.
    """

    def __init__(self, policy: Policy, url: str, *, timeout: float = 600.0) -> None:
        self.policy = policy
        self.client = Client(url, timeout)
        self.version = 0
        self.served = served_model(self.client)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        check_tokens(self.client, self.served, policy)

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts."""
        check_sampling(sampling)
        alike: dict[tuple[int, tuple[str, ...], int], list[int]] = defaultdict(list)
        for number, prompt in enumerate(prompts):
            alike[prompt.max_tokens, prompt.stop, prompt.salt].append(number)
        parts = [part for numbers in alike.values() for part in _parts(numbers, prompts, sampling.n)]
        found: dict[int, list[Completion]] = {}
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for each in pool.map(lambda part: self._ask(part, prompts, sampling), parts):
                found |= each
        return [found[number] for number in range(len(prompts))]

    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Give the server these weights, or the policy's own where there are none."""
        if not takes_weights(self.client):
            raise refuses_weights(self.client.url)
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="operant-weights-")
        folder = Path(self._folder.name)
        _write_weights(folder, self.policy, weights)
        self.client.post("/load", {"path": str(folder), "version": version})
        self.version = version

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """What the server writes to these prompts, and says of the weights that wrote it."""
        written = self.generate(prompts, sampling)
        facts = self.client.get("/fingerprint")
        sums = {name: (str(precision), int(total)) for name, (precision, total) in facts["sums"].items()}
        held = Fingerprint(sums, str(facts["tokenizer"]))
        return [Probe(f"the server at {self.client.url}", int(facts["version"]), held, written)]

    def close(self) -> None:
        """Remove the folder of weights."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _ask(
        self, numbers: Sequence[int], prompts: Sequence[Prompt], sampling: Sampling
    ) -> dict[int, list[Completion]]:
        first = prompts[numbers[0]]
        body = _body(self.served, [prompts[number].tokens for number in numbers], first, sampling)
        reply = self.client.post("/completions", body)
        choices = sorted(reply.get("choices", ()), key=lambda choice: choice["index"])
        if len(choices) != len(numbers) * sampling.n:
            raise self._broken(f"{len(choices)} completions instead of {len(numbers) * sampling.n}")
        version = int(reply.get("version", self.version))
        rows = [choices[place : place + sampling.n] for place in range(0, len(choices), sampling.n)]
        return {
            number: [self._completion(choice, version, sampling.masks) for choice in row]
            for number, row in zip(numbers, rows, strict=True)
        }

    def _completion(self, choice: Mapping[str, Any], version: int, masks: bool) -> Completion:
        tokens, logprobs = tokens_and_logprobs(choice)
        if not tokens or logprobs is None or len(tokens) != len(logprobs) or None in logprobs:
            raise self._broken("a completion without a log-probability for each of its token ids")
        finish = "stop" if choice.get("finish_reason") == "stop" else "length"
        mask = None
        if masks:
            if "sampling_mask" not in choice:
                raise self._broken("a completion without the sampling mask that was asked for")
            mask = SamplingMask(b64decode(choice["sampling_mask"]), len(tokens))
        return Completion(tuple(tokens), tuple(logprobs), str(choice.get("text", "")), finish, version, mask)

    def _broken(self, what: str) -> RunError:
        return RunError(f"the server sent {what}", place=self.client.url)


def served_model(client: Client) -> str:
    """The name of the model that a server serves first."""
    models = client.get("/models").get("data") or []
    if not models:
        raise UsageError("the server serves no model", place=client.url)
    return str(models[0]["id"])


def check_tokens(client: Client, served: str, policy: Policy) -> None:
    """Refuse a server that keeps its token ids to itself, or whose tokens are not the policy's."""
    prompt = Prompt(encode(PROBE, policy), 1)
    body = _body(served, [], prompt, Sampling(temperature=0)) | {"prompt": PROBE}
    choice = (client.post("/completions", body).get("choices") or [{}])[0]
    tokens, logprobs = tokens_and_logprobs(choice)
    if tokens is None or choice.get("prompt_token_ids") is None or logprobs is None:
        raise UsageError(
            "the server does not give token ids and their log-probabilities, and text is never made into tokens again",
            place=client.url,
            remedy="operant serve MODEL    (or vLLM, which knows return_token_ids)",
        )
    if tuple(choice["prompt_token_ids"]) != prompt.tokens:
        raise UsageError(
            f"the server's model {served} has other tokens than {policy.name}",
            place=client.url,
            remedy=f"operant serve {policy.name}",
        )


def takes_weights(client: Client) -> bool:
    """Whether the server is one of ours that takes new weights."""
    return client.health().get("loads") is True


def gives_masks(client: Client) -> bool:
    """Whether the server says what truncated sampling left to draw from."""
    return client.health().get("sampling_masks") is True


def refuses_weights(url: str) -> UsageError:
    """A policy cannot learn from what another model writes."""
    return UsageError(
        "the server takes no new weights, so a policy that learns would be answered by the old one",
        place=url,
        remedy="operant serve MODEL --allow-load    (evaluation needs no weights: operant eval MODEL --url URL)",
    )


def tokens_and_logprobs(choice: Mapping[str, Any]) -> tuple[list[int] | None, list[float] | None]:
    """Token ids and log-probabilities of a choice, each None where the server does not give them."""
    return choice.get("token_ids"), (choice.get("logprobs") or {}).get("token_logprobs")


def _parts(numbers: Sequence[int], prompts: Sequence[Prompt], n: int) -> Iterator[list[int]]:
    """The prompts that are asked for together."""
    part, size = list[int](), 0
    for number in numbers:
        cost = len(prompts[number].tokens) + n * prompts[number].max_tokens
        if part and (len(part) == PROMPTS_AT_ONCE or size + cost > TOKENS_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(number)
        size += cost
    if part:
        yield part


def _body(served: str, tokens: Sequence[Sequence[int]], like: Prompt, sampling: Sampling) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": served,
        "prompt": [list(each) for each in tokens],
        "max_tokens": like.max_tokens,
        "n": sampling.n,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed + like.salt,
        "logprobs": 0,
        "return_token_ids": True,
    }
    if like.stop:
        body["stop"] = list(like.stop)
    rest = {"top_k": sampling.top_k, "min_p": sampling.min_p, "return_sampling_mask": sampling.masks}
    return body | {key: value for key, value in rest.items() if value}


def _write_weights(folder: Path, policy: Policy, weights: Mapping[str, Tensor]) -> None:
    """Write weights, or the policy's own with what LoRA adds to them, rounded as the trainer's decoder rounds it."""
    from safetensors.torch import save_file

    sent = weights or dict(plain_weights(policy.model))
    save_file({name: value.contiguous().cpu() for name, value in sent.items()}, folder / "model.safetensors")
