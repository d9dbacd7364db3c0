"""The server: OpenAI's words over HTTP, and the generator's numbers behind them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from operant.engines.language.generation.generator import Completion, Prompt, Sampling
from operant.engines.language.generation.http_client import Client
from operant.engines.language.generation.stop_strings import StopStrings
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.chat_template import encode
from operant.engines.language.policy.model import Policy, write_folder
from operant.engines.language.serving.responses import GrowingText
from operant.errors import RunError, UsageError
from operant.web.access import Access
from operant.web.guard import Limits
from operant.web.server import WebServer
from tests.processes import wait_until
from tests.unit.engines.language.served_models import Served, events, fetch, serving, talking_policy
from tests.unit.engines.language.small_models import random_policy


@pytest.fixture(scope="module")
def policy() -> Policy:
    return talking_policy()


@pytest.fixture(scope="module")
def server(policy: Policy) -> Iterator[Served]:
    with serving(policy) as one:
        yield one


def complete(server: Served, **body: Any) -> dict[str, Any]:
    status, reply = fetch(f"{server.url}/completions", {"prompt": "ab", "max_tokens": 12, "seed": 3} | body)
    assert status == 200, reply
    return reply


def written(policy: Policy, text: str = "ab", max_tokens: int = 12, **wishes: Any) -> list[Completion]:
    """What the generator itself writes."""
    stop = wishes.pop("stop", ())
    prompt = Prompt(encode(text, policy), max_tokens, stop)
    return TorchGenerator(policy).generate([prompt], Sampling(**{"seed": 3, **wishes}))[0]


def test_facts(server: Served) -> None:
    _, models = fetch(f"{server.url}/models")
    assert [(one["id"], one["max_model_len"]) for one in models["data"]] == [("small", 64)]
    root = server.url.removesuffix("/v1")
    assert fetch(f"{root}/health")[1] | {"waiting": 0} == {
        "status": "ok",
        "model": "small",
        "version": 0,
        "waiting": 0,
        "loads": False,
        "sampling_masks": True,
    }


def test_a_completion_is_what_the_generator_writes(server: Served, policy: Policy) -> None:
    reply = complete(server, n=2, temperature=0.7, top_p=0.9, top_k=50, logprobs=0, return_token_ids=True)
    expected = written(policy, n=2, temperature=0.7, top_p=0.9, top_k=50)
    for choice, one in zip(reply["choices"], expected, strict=True):
        assert (choice["text"], choice["finish_reason"]) == (one.text, one.finish)
        assert tuple(choice["token_ids"]) == one.tokens
        assert tuple(choice["prompt_token_ids"]) == encode("ab", policy)
        np.testing.assert_allclose(choice["logprobs"]["token_logprobs"], one.logprobs, atol=1e-6)
    assert [choice["index"] for choice in reply["choices"]] == [0, 1]
    wrote = sum(len(one.tokens) for one in expected)
    assert reply["usage"] == {"prompt_tokens": 2, "completion_tokens": wrote, "total_tokens": 2 + wrote}


def test_prompts_may_be_texts_tokens_or_lists_of_them(server: Served, policy: Policy) -> None:
    ids = list(encode("ab", policy))
    texts = [
        [choice["text"] for choice in complete(server, prompt=one)["choices"]] for one in ("ab", ids, ["ab"], [ids])
    ]
    assert texts[0] == texts[1] == texts[2] == texts[3]
    several = complete(server, prompt=["ab", "cd"], n=2)["choices"]
    assert [one["text"] for one in several[:2]] == [one.text for one in written(policy, n=2)]
    assert [one["text"] for one in several[2:]] == [one.text for one in written(policy, "cd", n=2)]


def test_a_stop_string_ends_the_text_before_it(server: Served, policy: Policy) -> None:
    whole = written(policy, max_tokens=40)[0].text
    stop = whole[5:7]
    choice = complete(server, max_tokens=40, stop=stop)["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == (whole[: whole.index(stop)], "stop")


def test_echo_scores_the_prompt_as_lm_eval_asks_for_it(server: Served, policy: Policy) -> None:
    (choice,) = complete(server, prompt="abcd", max_tokens=1, echo=True, logprobs=1, temperature=0)["choices"]
    told = choice["logprobs"]
    assert choice["text"].startswith("abcd")
    assert told["tokens"][:4] == ["a", "b", "c", "d"]
    assert told["text_offset"] == [0, 1, 2, 3, 4]
    assert told["token_logprobs"][0] is told["top_logprobs"][0] is None
    logits = policy.model(input_ids=np_tokens(encode("abcd", policy))).logits[0].float().log_softmax(-1)
    ids = encode("abcd", policy)
    for place in (1, 2, 3):
        row = logits[place - 1]
        assert told["token_logprobs"][place] == pytest.approx(float(row[ids[place]].detach()), abs=1e-5)
        assert max(told["top_logprobs"][place].values()) == pytest.approx(float(row.max().detach()), abs=1e-5)
    # The token that was written greedily is the likeliest, to the last bit: this is how lm_eval finds that out.
    assert told["token_logprobs"][4] == max(told["top_logprobs"][4].values())


def np_tokens(tokens: tuple[int, ...]) -> Any:
    import torch

    return torch.tensor([tokens])


def test_echo_of_nothing_but_the_prompt(server: Served) -> None:
    (choice,) = complete(server, prompt="abcd", max_tokens=0, echo=True, logprobs=2, temperature=0)["choices"]
    assert choice["text"] == "abcd"
    assert len(choice["logprobs"]["token_logprobs"]) == 4


def test_chat_is_the_template_and_then_a_completion(server: Served, policy: Policy) -> None:
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    body = {"messages": turns, "max_tokens": 9, "seed": 3, "logprobs": True, "top_logprobs": 2}
    status, reply = fetch(f"{server.url}/chat/completions", body)
    assert status == 200, reply
    (choice,), expected = reply["choices"], written(policy, "[s]s[u]hi[a]", 9)[0]
    assert choice["message"] == {"role": "assistant", "content": expected.text}
    content = choice["logprobs"]["content"]
    np.testing.assert_allclose([one["logprob"] for one in content], expected.logprobs, atol=1e-5)
    assert {len(one["top_logprobs"]) for one in content} == {2}
    assert reply["object"] == "chat.completion"


@pytest.mark.parametrize("chat", [False, True])
def test_a_stream_says_the_same_piece_by_piece(server: Served, policy: Policy, chat: bool) -> None:
    body: dict[str, Any] = {"max_tokens": 40, "seed": 3, "n": 2, "return_token_ids": True}
    body |= {"stream_options": {"include_usage": True}}
    body |= {"messages": [{"role": "user", "content": "hi"}]} if chat else {"prompt": "[u]hi[a]", "logprobs": 0}
    pieces = events(f"{server.url}/{'chat/' if chat else ''}completions", body)
    expected = written(policy, "[u]hi[a]", 40, n=2)
    for index, one in enumerate(expected):
        mine = [choice for piece in pieces for choice in piece["choices"] if choice["index"] == index]
        said = [choice["delta"].get("content", "") if chat else choice["text"] for choice in mine]
        assert "".join(said) == one.text
        assert [token for choice in mine for token in choice.get("token_ids", ())] == list(one.tokens)
        assert mine[-1]["finish_reason"] == one.finish
        assert {choice["finish_reason"] for choice in mine[:-1]} == {None}
        if not chat:
            told = [value for choice in mine for value in choice["logprobs"]["token_logprobs"]]
            np.testing.assert_allclose(told, one.logprobs, atol=1e-6)
    assert max(len(one.tokens) for one in expected) > 8
    assert len(pieces) > 4
    assert pieces[-1]["usage"]["completion_tokens"] == sum(len(one.tokens) for one in expected)


def test_a_stream_never_takes_back_what_it_said() -> None:
    policy = random_policy("tiny")
    text = "aé STOP rest"
    tokens = encode(text, policy)
    growing = GrowingText(StopStrings(policy.tokenizer), ("STOP",))
    said = [growing.grow(tokens[:count]) for count in range(1, len(tokens) + 1)]
    assert "".join(said) == "aé "
    assert said[1] == ""  # half of a character
    assert said[4:8] == ["", "", "", ""]  # what may become the stop string, and does


def test_requests_that_come_together_are_answered_together(server: Served, policy: Policy) -> None:
    batcher, texts = server.service.batcher, [f"{letter}b" for letter in "acegikmo"]
    before = batcher.batches
    with ThreadPoolExecutor(len(texts)) as pool:
        replies = list(pool.map(lambda text: complete(server, prompt=text, max_tokens=30), texts))
    assert [one["choices"][0]["text"] for one in replies] == [written(policy, text, 30)[0].text for text in texts]
    assert batcher.batches - before < len(texts)


def test_without_a_seed_no_two_completions_are_alike(server: Served) -> None:
    replies = complete(server, prompt=["ab"] * 6, seed=None, max_tokens=20)["choices"]
    assert len({one["text"] for one in replies}) == 6


REFUSED = {
    "temperature below zero": ({"temperature": -1}, "temperature"),
    "a number as text": ({"max_tokens": "5"}, "max_tokens"),
    "an unknown field": ({"tempurature": 1}, "tempurature"),
    "a penalty": ({"frequency_penalty": 0.5}, "frequency_penalty"),
    "no prompt": ({"prompt": None}, "prompt"),
    "an empty prompt": ({"prompt": ""}, "prompt"),
    "a token that does not exist": ({"prompt": [5, 258]}, "prompt"),
    "a prompt that is too long": ({"prompt": "x" * 60}, "prompt"),
    "nothing to write": ({"max_tokens": 0}, "max_tokens"),
    "an empty stop": ({"stop": ["a", ""]}, "stop"),
    "a temperature that float32 does not know": ({"temperature": 1e-320}, "temperature"),
    "a temperature that overflows logits": ({"temperature": 1e-38}, "temperature"),
    "a top_p that leaves nothing": ({"top_p": 1e-320}, "top_p"),
    "truth as a number": ({"temperature": True}, "temperature"),
    "truth as a count": ({"n": True}, "n"),
    "too many completions": ({"prompt": ["a"] * 100, "n": 1000}, "prompt"),
    "too many log-probabilities": ({"prompt": ["a"] * 800, "n": 4, "logprobs": 100, "max_tokens": 20}, "prompt"),
    "a megabyte of prompt": ({"prompt": "x" * 1_000_000}, "prompt"),
    "a stream of likeliest tokens": ({"stream": True, "logprobs": 3}, "stream"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_request_names_the_field(server: Served, case: str) -> None:
    body, field = REFUSED[case]
    status, reply = fetch(f"{server.url}/completions", {"prompt": "ab", "max_tokens": 12} | body)
    assert (status, reply["error"]["param"], reply["error"]["type"]) == (400, field, "invalid_request_error")
    assert reply["error"]["message"]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"prompt": "a", "temperature": NaN}',
        b'{"prompt": "a", "temperature": 1e400}',
        b'{"prompt": "a", "max_tokens": ' + b"1" * 5000 + b"}",
        b'{"prompt": "\\ud800"}',
        b'{"prompt": "\xff"}',
        b'{"prompt": "a", "stop": "\\udc00"}',
        b'{"prompt": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b"[" * 50_000,
        b'{"messages": [{"role": "user", "content": "a", "tool_calls": 5}]}',
        b'{"messages": [{"role": "user", "content": "a", "tool_calls": [5]}]}',
    ],
)
def test_what_is_no_sound_json_is_the_clients_mistake(server: Served, raw: bytes) -> None:
    path = "chat/completions" if b"messages" in raw else "completions"
    status, reply = fetch(f"{server.url}/{path}", raw)
    assert (status, reply["error"]["type"]) == (400, "invalid_request_error")


def test_arguments_of_a_call_that_are_nested_without_end_stay_words(server: Served) -> None:
    calls = [{"function": {"name": "f", "arguments": "[" * 100_000}}]
    body = {"messages": [{"role": "assistant", "tool_calls": calls}], "max_tokens": 2}
    assert fetch(f"{server.url}/chat/completions", body)[0] in (200, 400)


def test_a_template_that_refuses_a_conversation_is_the_clients_mistake() -> None:
    policy = talking_policy()
    policy.tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with serving(policy) as server:
        status, reply = fetch(f"{server.url}/chat/completions", {"messages": [{"role": "user", "content": "a"}]})
    assert (status, reply["error"]["param"]) == (400, "messages")
    assert "roles must alternate" in reply["error"]["message"]


def test_a_prompt_of_ten_megabytes_is_refused_before_it_is_made_into_tokens(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of nine million letters a context's worth is counted, and a body over the limit is not even read."""
    from operant.engines.language.serving import requests

    counted = []
    monkeypatch.setattr(requests, "bare_tokens", lambda text, policy: counted.append(len(text)) or [0] * len(text))
    with serving(policy, limits=Limits(body_bytes=9_500_000)) as server:
        status, reply = fetch(f"{server.url}/completions", {"prompt": "x" * 9_000_000})
        assert (status, reply["error"]["param"]) == (400, "prompt")
        assert "maximum context length is 64 tokens" in reply["error"]["message"]
        assert fetch(f"{server.url}/completions", {"prompt": "x" * 10_000_000})[0] == 413
    assert sum(counted) <= 2 * requests.SLICE


def test_other_refusals(server: Served) -> None:
    assert fetch(f"{server.url}/completions", {"prompt": "a", "model": "gpt"})[0] == 404
    assert fetch(f"{server.url}/completions", b"{")[0] == 400
    assert fetch(f"{server.url}/completions", [1])[0] == 400
    assert fetch(f"{server.url}/nowhere", {})[0] == 404
    assert fetch(f"{server.url}/models", {})[0] == 405
    assert fetch(f"{server.url}/completions")[0] == 405
    assert fetch(f"{server.url}/load", {"path": "x", "version": 1})[0] == 403
    turn = {"role": "user", "content": 5}
    assert fetch(f"{server.url}/chat/completions", {"messages": [turn]})[1]["error"]["param"] == "messages"


def test_a_failure_of_ours_is_told_and_the_next_request_is_answered(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patched:
        patched.setattr(server.service.generator, "generate", broken)
        status, reply = fetch(f"{server.url}/completions", {"prompt": "a"})
        assert (status, reply["error"]["message"]) == (500, "RuntimeError: out of luck")
    assert complete(server)["choices"]


def test_a_request_has_so_much_time_and_others_are_answered_after_it(policy: Policy) -> None:
    import time

    with serving(policy, seconds=0.5) as server:
        server.service.generator.beat = lambda: time.sleep(0.2)
        body = {"prompt": "ab", "max_tokens": 60, "n": 64, "seed": 1}
        status, reply = fetch(f"{server.url}/completions", body)
        assert (status, reply["error"]["type"]) == (504, "server_error")
        pieces = events(f"{server.url}/completions", body)
        assert pieces[-1]["error"]["code"] == 504
        server.service.generator.beat = lambda: None
        while (status := fetch(f"{server.url}/completions", {"prompt": "a", "max_tokens": 1})[0]) == 504:
            pass  # on a machine that is busy
        assert status == 200


def test_so_many_requests_wait_and_no_more(policy: Policy) -> None:
    gate = threading.Event()
    with serving(policy, queue=1) as server, ThreadPoolExecutor(2) as pool:
        batcher = server.service.batcher
        batcher.do(lambda: gate.wait(300))
        assert wait_until(lambda: not batcher.waiting, 120)
        held = pool.submit(complete, server)
        assert wait_until(lambda: bool(batcher.waiting), 120)
        status, reply = fetch(f"{server.url}/completions", {"prompt": "ab"})
        gate.set()
        assert (status, reply["error"]["type"]) == (429, "rate_limit_error")
        assert held.result()["choices"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_ends_the_writing(policy: Policy, stream: bool) -> None:
    beats: list[int] = []
    begun, left = threading.Event(), threading.Event()

    def beat() -> None:
        beats.append(1)
        begun.set()
        left.wait(30)

    with serving(policy, slots=1) as server:
        server.service.generator.beat = beat
        body = json.dumps({"prompt": "ab", "max_tokens": 60, "n": 500, "seed": 1, "stream": stream}).encode()
        with socket.create_connection(("127.0.0.1", server.server.port)) as wire:
            head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            wire.sendall(head.encode() + body)
            assert begun.wait(30)
        threading.Timer(0.5, left.set).start()
        assert complete(server, max_tokens=1)["choices"]
    assert len(beats) < 100  # of thousands


def test_a_key_is_asked_for_and_our_own_client_has_it(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(policy, Access.at("127.0.0.1", api_key="s3cret")) as server:
        assert fetch(f"{server.url}/models")[0] == 401
        with pytest.raises(RunError, match="401"):
            Client(server.url).get("/models")
        monkeypatch.setenv("OPERANT_API_KEY", "s3cret")
        assert Client(server.url).get("/models")["data"][0]["id"] == "small"


def test_the_openai_package_is_understood(policy: Policy) -> None:
    openai = pytest.importorskip("openai")
    with serving(policy, Access.at("127.0.0.1", api_key="s3cret")) as server:
        client = openai.OpenAI(base_url=server.url, api_key="s3cret", max_retries=0)
        assert [model.id for model in client.models.list()] == ["small"]
        asked = {"model": "small", "max_tokens": 9, "seed": 3}
        text = client.completions.create(prompt="ab", **asked).choices[0].text
        assert text == written(policy, max_tokens=9)[0].text
        turns = [{"role": "user", "content": "hi"}]
        whole = client.chat.completions.create(messages=turns, logprobs=True, **asked).choices[0]
        chunks = list(client.chat.completions.create(messages=turns, stream=True, **asked))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.message.content
        assert len(whole.logprobs.content) == len(written(policy, "[u]hi[a]", 9)[0].tokens)
        with pytest.raises(openai.BadRequestError, match="temperature"):
            client.completions.create(prompt="ab", temperature=-1, **asked)
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=server.url, api_key="wrong", max_retries=0).models.list()


def test_a_base_model_has_no_chat() -> None:
    with serving(random_policy("tiny")) as server:
        status, reply = fetch(f"{server.url}/chat/completions", {"messages": [{"role": "user", "content": "a"}]})
    assert (status, reply["error"]["param"]) == (400, "messages")
    assert "/v1/completions" in reply["error"]["message"]


def test_weights_are_loaded_from_a_folder(tmp_path: Path) -> None:
    other = random_policy("llama", seed=1)
    write_folder(other, tmp_path / "other")
    with serving(random_policy("llama"), allow_load=True) as server:
        status, reply = fetch(f"{server.url}/load", {"path": str(tmp_path / "other"), "version": 7})
        assert (status, reply["version"]) == (200, 7)
        reply = complete(server)
        assert (reply["choices"][0]["text"], reply["version"]) == (written(other)[0].text, 7)
        status, reply = fetch(f"{server.url}/load", {"path": str(tmp_path), "version": 8})
        assert (status, reply["error"]["param"]) == (400, "path")


def test_a_port_in_use_is_one_clear_line(server: Served) -> None:
    port = server.server.port
    with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 is in use"):
        WebServer("127.0.0.1", port)
