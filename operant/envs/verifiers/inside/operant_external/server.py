"""Opens an environment, lists its rows, and lets groups of rollouts run side by side, until the pipe is closed.

Requests: {"do": "open"}, {"do": "rows"}, {"do": "group"}, each with a `ticket` that its reply bears too; and
{"do": "drop"} for a group that nobody waits for any more.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from operant_external.wire import Refusal, Wire, words_of  # pyright: ignore[reportMissingImports]


class External(Protocol):
    """An environment of either generation."""

    generation: str

    def counts(self) -> dict[str, int]:
        """How many rows the splits have."""
        ...

    def rows(self, split: str, start: int, count: int) -> list[dict[str, Any]]:
        """Rows of a split: an `id` and the `prompt` as text."""
        ...

    async def group(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Rollouts of one row, played against the policy at an address, and scored."""
        ...


def main() -> None:
    """Serve until the pipe is closed."""
    wire = Wire()
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, so that a file here never stands in for an installed package
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    asyncio.run(_serve(wire))


async def _serve(wire: Wire) -> None:
    loop, external = asyncio.get_running_loop(), None
    under_way: dict[int, asyncio.Task[None]] = {}
    while (request := await loop.run_in_executor(None, wire.read)) is not None:
        ticket = request["ticket"]
        if request["do"] == "open":
            external = await _answered(wire, request, _open(request))
        elif request["do"] == "rows":
            await _answered(wire, request, _rows(external, request))
        elif request["do"] == "drop":
            if ticket in under_way:
                under_way[ticket].cancel()
        else:
            under_way[ticket] = asyncio.create_task(_answered(wire, request, _group(external, request)))
            under_way[ticket].add_done_callback(lambda _, ticket=ticket: under_way.pop(ticket))
    left = list(under_way.values())
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    if external is not None:
        await external.close()


async def _answered(wire: Wire, request: dict[str, Any], work: Any) -> Any:
    """Do the work and reply; a refusal and a failure are replies too."""
    try:
        kept, reply = await work
    except Refusal as refusal:
        kept, reply = None, {"refused": refusal.cause, "remedy": refusal.remedy}
    except Exception as fault:
        kept, reply = None, {"failed": words_of(fault)}
    wire.write({"ticket": request["ticket"], **reply})
    return kept


async def _open(request: dict[str, Any]) -> tuple[External, dict[str, Any]]:
    name, python = request["environment"], sys.executable
    try:
        installed = version("verifiers")
    except PackageNotFoundError:
        raise Refusal(f"{python} has no package verifiers", f"{python} -m pip install verifiers") from None
    module = name.rsplit("/", 1)[-1].split("@", 1)[0].replace("-", "_").lower()
    external = await _make(request, module, installed)
    counts = external.counts()
    if not counts["train"] and not counts["eval"]:
        raise Refusal(f"the environment {name} has no rows")
    return external, {"generation": external.generation, "version": installed, **counts}


async def _make(request: dict[str, Any], module: str, installed: str) -> Any:
    """The adapter for what the module offers: a classic loader first where both generations are there."""
    name, classic_too = request["environment"], importlib.util.find_spec("verifiers.legacy") is not None
    old = tuple(int(part) for part in installed.split(".")[:2] if part.isdigit()) < (0, 3)
    if importlib.util.find_spec(module) is None and not _builtin(module):
        install = name if "/" not in name else name.rsplit("/", 1)[-1]
        raise Refusal(
            f"no environment {name} is installed for {sys.executable}",
            f"{sys.executable} -m pip install {install}    (or put the module {module} into this folder)",
        )
    if classic_too or old:
        found = _imported(name, module) if importlib.util.find_spec(module) else None
        if callable(getattr(found, "load_environment", None)):
            from operant_external.classic import ClassicEnvironment  # pyright: ignore[reportMissingImports]

            return ClassicEnvironment(request)
    if old:
        raise Refusal(f"{name} has no load_environment, and verifiers {installed} knows nothing else")
    from operant_external.modern import TasksetEnvironment  # pyright: ignore[reportMissingImports]

    external = TasksetEnvironment(request, module, installed)
    await external.start()
    return external


def _imported(name: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except Exception as fault:
        raise Refusal(f"{name} cannot be loaded: {words_of(fault)}") from fault


def _builtin(module: str) -> bool:
    try:
        return importlib.util.find_spec(f"verifiers.v1.tasksets.{module}") is not None
    except ModuleNotFoundError:
        return False


async def _rows(external: Any, request: dict[str, Any]) -> tuple[None, dict[str, Any]]:
    return None, {"rows": external.rows(request["split"], request["start"], request["count"])}


async def _group(external: Any, request: dict[str, Any]) -> tuple[None, dict[str, Any]]:
    return None, {"rollouts": await external.group(request)}
