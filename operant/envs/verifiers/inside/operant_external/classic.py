"""Environments of the classic API: a module with `load_environment`, verifiers up to 0.3."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from operant_external.wire import Refusal, words_of  # pyright: ignore[reportMissingImports]

vf: Any = import_module("verifiers")
EMPTY = "EmptyModelResponseError"
KEY = "OPERANT_POLICY_KEY"


class ClassicEnvironment:
    """One loaded environment, and a second one for evaluation where its arguments differ (final)."""

    generation = "classic"

    def __init__(self, request: dict[str, Any]) -> None:
        name, arguments = request["environment"], request["arguments"]
        self.env = _loaded(name, arguments)
        other = request["eval_arguments"]
        self.eval_env = self.env if other is None else _loaded(name, {**arguments, **other})
        self._rows = _rows_of(self.env, self.eval_env, request["held_out"])

    def counts(self) -> dict[str, int]:
        """How many rows the splits have."""
        return {split: len(rows) for split, rows in self._rows.items()}

    def rows(self, split: str, start: int, count: int) -> list[dict[str, Any]]:
        """Rows of a split."""
        rows = self._rows[split]
        return [
            {"id": str(rows[at].get("example_id", at)), "prompt": _text(rows[at].get("prompt"))}
            for at in range(start, min(start + count, len(rows)))
        ]

    async def group(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The group's rollouts, scored together, as rewards may compare them."""
        env = self.eval_env if request["split"] == "eval" else self.env
        row = dict(self._rows[request["split"]][request["row"]])
        config = vf.ClientConfig(
            api_key_var=KEY,
            api_base_url=request["url"],
            max_retries=0,
            timeout=request["seconds"],
            extra_headers_from_state={"X-Session-ID": "trajectory_id"},
        )
        client = import_module("verifiers.clients").resolve_client(config)
        settled = {**(env.sampling_args or {}), **request["sampling"]}
        try:
            outputs = await env.run_group(
                [row] * request["n"], client, request["model"], settled, state_columns=["trajectory_id"]
            )
        finally:
            await client.close()
        return [_rollout(output) for output in outputs]

    async def close(self) -> None:
        """Let the environments tear down what they hold."""
        for env in {id(each): each for each in (self.env, self.eval_env)}.values():
            await env._teardown()


def _loaded(name: str, arguments: dict[str, Any]) -> Any:
    from verifiers.utils.env_utils import import_env_module  # pyright: ignore[reportMissingImports]

    load = import_env_module(name).load_environment
    accepted = inspect.signature(load).parameters
    open_to_any = any(each.kind is each.VAR_KEYWORD for each in accepted.values())
    unknown = [key for key in arguments if key not in accepted]
    if unknown and not open_to_any:
        takes = ", ".join(accepted) or "none"
        raise Refusal(f"the environment {name} has no argument {unknown[0]!r}", f"it takes {takes}")
    return vf.load_environment(name, **arguments)


def _rows_of(env: Any, eval_env: Any, held_out: int | None) -> dict[str, Any]:
    """Rows to train on and rows that are held out: a dataset of its own, or the last ones of the only one."""
    train = _dataset(env.get_dataset)
    separate = (
        eval_env is not env or eval_env.eval_dataset is not None or getattr(eval_env, "eval_dataset_source", None)
    )
    test = _dataset(eval_env.get_eval_dataset) if separate else None
    if test is not None or train is None:
        return {"train": train or [], "eval": test or []}
    last = min(held_out if held_out is not None else min(100, len(train) // 5), len(train) - 1)
    cut = len(train) - last
    return {"train": train.select(range(cut)), "eval": train.select(range(cut, len(train)))}


def _dataset(get: Any) -> Any:
    try:
        return get()
    except ValueError:
        return None


def _rollout(output: dict[str, Any]) -> dict[str, Any]:
    """What a rollout came to. To say nothing is the policy's own doing: it earns nothing, and is no error."""
    error, metrics = output.get("error"), dict(output.get("metrics") or {})
    silent = error is not None and EMPTY in str(error)
    return {
        "session": output["trajectory_id"],
        "reward": 0.0 if silent else output.get("reward"),
        "error": None if error is None or silent else _error(error),
        "parts": {**metrics, **({"silent": 1.0} if silent else {})},
        "truncated": bool(output.get("is_truncated")),
        "messages": [_message(each) for each in output.get("completion") or ()],
        "opening": [_message(each) for each in output.get("prompt") or ()],
    }


def _error(error: Any) -> str:
    if isinstance(error, BaseException):
        return words_of(error)
    if isinstance(error, dict):
        return " ".join(str(error.get("error_chain_str") or error.get("error") or error).split())[:600]
    return str(error)[:600]


def _message(message: Any) -> dict[str, str]:
    plain = message if isinstance(message, dict) else message.model_dump()
    return {"role": str(plain.get("role")), "text": _text([plain])}


def _text(prompt: Any) -> str:
    """The words of a prompt: a text, or messages whose content is text, in one piece or in parts."""
    if isinstance(prompt, str) or prompt is None:
        return prompt or ""
    said = []
    for message in prompt:
        plain = message if isinstance(message, dict) else message.model_dump()
        content = plain.get("content") or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        said.append("".join(str(part.get("text") or "") for part in parts if isinstance(part, dict)))
    return "\n\n".join(said)
