"""Environments of today's API: a package that exports a `Taskset`, verifiers from 0.4 on.

Everything runs here: agents in the runtime `subprocess`, asked for nothing at any other address than the policy's.
Where a taskset brings no harness of its own, a plain conversation is held in this process (`operant_chat`), for the
built-in ones build a Python environment first, with uv and the network.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import pathlib
from typing import Any

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from pydantic import ValidationError
from verifiers.v1.env import RunSlot  # pyright: ignore[reportMissingImports]
from verifiers.v1.utils import loaders  # pyright: ignore[reportMissingImports]

from operant_external.wire import Refusal, words_of  # pyright: ignore[reportMissingImports]

KEY = "OPERANT_POLICY_KEY"
CHAT = "operant_chat"
ENDLESS_ROWS = 1_000
"""So many tasks of a taskset without end are played."""


class TasksetEnvironment:
    """One environment that serves, and a second one for evaluation where its arguments differ (final)."""

    generation = "v1"

    def __init__(self, request: dict[str, Any], module: str, installed: str) -> None:
        name, arguments = request["environment"], request["arguments"]
        try:
            loaders.taskset_class(name)
        except Exception as fault:
            raise _foreign(name, module, installed, fault) from fault
        self.env = _loaded(name, arguments, request["harness"])
        other = request["eval_arguments"]
        self.eval_env = self.env if other is None else _loaded(name, {**arguments, **other}, request["harness"])
        self._rows = _rows_of(self.env, self.eval_env, request["held_out"])
        self._held = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Bring up what rollouts share."""
        for env in {id(each): each for each in (self.env, self.eval_env)}.values():
            await self._held.enter_async_context(env.serving())

    async def close(self) -> None:
        """Take it down."""
        await self._held.aclose()

    def counts(self) -> dict[str, int]:
        """How many rows the splits have."""
        return {split: len(rows) for split, rows in self._rows.items()}

    def rows(self, split: str, start: int, count: int) -> list[dict[str, Any]]:
        """Rows of a split."""
        tasks = self._rows[split][start : start + count]
        return [{"id": str(task.data.id or task.data.idx), "prompt": task.data.prompt_text} for task in tasks]

    async def group(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """As many episodes of one task; each gives a rollout for every agent that the policy plays and may learn."""
        env = self.eval_env if request["split"] == "eval" else self.env
        task = self._rows[request["split"]][request["row"]]
        client = vf.EvalClientConfig(base_url=request["url"], api_key_var=KEY, timeout={"read": request["seconds"]})
        context = vf.ModelContext(request["model"], client, vf.SamplingConfig(**request["sampling"]))
        slots = [RunSlot(task) for _ in range(request["n"])]
        episodes = await asyncio.gather(*(env.run_slot(slot, context) for slot in slots))
        return [each for episode in episodes for each in _rollouts(episode)]


def _loaded(name: str, arguments: dict[str, Any], harness: str | None) -> Any:
    """The environment of a taskset, every agent of which runs here."""
    kind = loaders.taskset_config_type(name)
    unknown = [key for key in arguments if key not in kind.model_fields]
    if unknown:
        takes = ", ".join(key for key in kind.model_fields if key not in ("id", "task", "system_prompt"))
        raise Refusal(f"the environment {name} has no argument {unknown[0]!r}", f"it takes {takes or 'none'}")
    roles = loaders.env_config_type(name)
    agents = [key for key, field in roles.model_fields.items() if isinstance(field.default, vf.AgentConfig)]
    own = loaders.default_harness_id(name)
    chosen = harness or (CHAT if own == "bash" else own)
    agent = {"runtime": {"type": "subprocess"}, "harness": {"id": chosen}}
    try:
        config = loaders.resolve_env_config(
            {
                "taskset": {"id": name, **arguments},
                **dict.fromkeys(agents, agent),
                "interception": {"type": "server"},
            }
        )
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Refusal(f"the environment {name} refuses {place}: {first['msg']}") from fault
    return loaders.load_environment(config)


def _rows_of(env: Any, eval_env: Any, held_out: int | None) -> dict[str, list[Any]]:
    """Tasks to train on and tasks that are held out: of a second environment, or the last ones of the only one."""
    tasks = _tasks_of(env.taskset)
    if eval_env is not env:
        return {"train": tasks, "eval": _tasks_of(eval_env.taskset)}
    last = min(held_out if held_out is not None else min(100, len(tasks) // 5), len(tasks) - 1)
    cut = max(len(tasks) - last, 0)
    return {"train": tasks[:cut], "eval": tasks[cut:]}


def _tasks_of(taskset: Any) -> list[Any]:
    return list(taskset if taskset.bounded else itertools.islice(taskset, ENDLESS_ROWS))


def _rollouts(episode: Any) -> list[dict[str, Any]]:
    """What an episode came to; one that failed as a whole is an error of each of its rollouts."""
    failed = None if episode.ok else (episode.last_error or _first(trace.last_error for trace in episode.traces))
    traces = [trace for trace in episode.traces if trace.agent.trainable]
    return [_rollout(trace, failed) for trace in traces] or [_nothing(failed)]


def _rollout(trace: Any, failed: Any) -> dict[str, Any]:
    error = trace.last_error or failed
    messages = [_message(each) for each in trace.messages]
    said = next((at for at, each in enumerate(messages) if each["role"] == "assistant"), len(messages))
    parts = {key: value for key, value in trace.metrics.items() if value is not None}
    parts |= {key: one.score for key, one in trace.rewards.items() if one is not None}
    return {
        "session": trace.id,
        "reward": trace.reward,
        "error": None if error is None else _words(error),
        "parts": parts,
        "truncated": bool(trace.is_truncated),
        "messages": messages[said:],
        "opening": messages[:said],
    }


def _nothing(failed: Any) -> dict[str, Any]:
    words = "the episode has no rollout" if failed is None else _words(failed)
    empty: dict[str, Any] = {"messages": [], "opening": [], "parts": {}}
    return {"session": "", "reward": None, "error": words, "truncated": False, **empty}


def _message(message: Any) -> dict[str, str]:
    from verifiers.v1.types import content_text  # pyright: ignore[reportMissingImports]

    return {"role": message.role, "text": content_text(message.content) or ""}


def _words(error: Any) -> str:
    return f"{error.type}: {' '.join(str(error.message).split())}"[:600]


def _first(found: Any) -> Any:
    return next((each for each in found if each is not None), None)


def _foreign(name: str, module: str, installed: str, fault: Exception) -> Refusal:
    """What is wrong with a module that is no taskset: most often it is one of the classic API."""
    found = importlib.util.find_spec(module)
    origin = found.origin if found is not None else None
    source = pathlib.Path(origin).read_text("utf-8", "replace") if origin else ""
    if "def load_environment" in source:
        return Refusal(
            f"{name} is an environment of the classic API, which verifiers {installed} does not have any more",
            "install 'verifiers<0.4' and the environment elsewhere, and say python: FOLDER/bin/python in its arguments",
        )
    return Refusal(f"{name} cannot be loaded: {words_of(fault)}")
