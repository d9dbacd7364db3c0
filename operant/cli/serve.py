"""`operant serve`: a language model for OpenAI's clients."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.model_references import Device, Dtype, Manner, RunOrModel, of_model, of_run, runs_of
from operant.cli.options import DEFAULT_ROOT, AsJson, CheckpointName, Root
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from operant.engines.language.evaluation.evaluator import ModelReference
    from operant.web.server import WebServer

KEY = "OPERANT_API_KEY"


def serve(
    target: RunOrModel,
    checkpoint: CheckpointName = "latest",
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0 for any that is free.")
    ] = 8000,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What the model is called; RUN|MODEL by default.")
    ] = None,
    slots: Annotated[int, typer.Option("--slots", metavar="N", min=1, help="Completions written side by side.")] = 64,
    queue: Annotated[
        int, typer.Option("--queue", metavar="N", min=1, help="Requests that may wait; further ones get status 429.")
    ] = 256,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long one request may take.")
    ] = 600.0,
    body_mib: Annotated[
        int, typer.Option("--max-body", metavar="MIB", min=1, max=1024, help="Largest body of a request, in MiB.")
    ] = 8,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name that clients may call this server by."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="URL", help="A page whose scripts may ask; `*` for every page."),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option("--api-key-env", metavar="NAME", help=f"Variable that holds the API key; {KEY} by default."),
    ] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Let other machines ask without an API key.")] = False,
    allow_load: Annotated[
        bool, typer.Option("--allow-load", help="Let clients replace the weights by a folder on this machine.")
    ] = False,
    template: Annotated[
        str,
        typer.Option(
            "--template",
            metavar="KIND",
            help="`chat` for the model's own, or `raw` to put the words of chats one after the other.",
        ),
    ] = "chat",
    device: Device = None,
    dtype: Dtype = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Serve a language model at /v1/completions, /v1/chat/completions and /v1/models until Ctrl-C.

    Of several sessions the one with the best evaluation is served. Requests that come together are answered together.

    \b
      operant serve grpo_tiny
      operant serve smollm2-135m-instruct --port 8080
      curl http://127.0.0.1:8000/v1/completions -d '{"prompt": "2 + 2 =", "max_tokens": 8}'
    """
    from operant.web.access import Access
    from operant.web.guard import MEBIBYTE, Limits

    if template not in ("chat", "raw"):
        raise UsageError(f"there is no template {template!r}", remedy="--template chat, or --template raw")
    key = _api_key(api_key_env)
    if key is None and not no_auth:
        _refuse_other_machines(host)
    access = Access.at(host, allow_host or (), allow_origin or (), key)
    # A mistake is reported before the slow imports.
    candidate = _candidate(target, checkpoint, root, Manner(device, dtype))
    from operant.engines import part

    api, service = part("language", "serving.api"), part("language", "serving.service")
    from operant.web.server import WebServer

    server = WebServer(host, port)
    model = service.ModelService(
        candidate.policy(), name or target, slots=slots, allow_load=allow_load, template=template, queue=queue
    )
    url = f"{server.url}/v1"
    if as_json:
        document({"url": url, "model": model.name, "context": model.policy.context, "exit": EXIT_DONE})
        sys.stdout.flush()
    else:
        say(f"{model.name} at {url}{', with an API key' if key else ''}; Ctrl-C ends it")
    limits = Limits(body_bytes=body_mib * MEBIBYTE, all_bytes=8 * body_mib * MEBIBYTE)
    _run_until_stopped(server, api.build_app(model, access, limits, timeout), model.close)
    return EXIT_DONE


def _refuse_other_machines(host: str) -> None:
    """`UsageError` where others than this machine could ask."""
    from operant.web.access import is_loopback

    if not is_loopback(host):
        raise UsageError(
            f"everybody who reaches {host} could use the model, for there is no API key",
            remedy=f"export {KEY}=...    (or --no-auth, where that is meant)",
        )


def _run_until_stopped(server: WebServer, app: Any, close: Callable[[], None]) -> None:
    """Answer requests until Ctrl-C or a request to end."""
    # Said here, for a program started in the background of a shell would not hear of Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        server.run(app)
    except KeyboardInterrupt:
        aside("ended")
    finally:
        close()


def _api_key(variable: str | None) -> str | None:
    """The key in the environment; a variable that is named must be there."""
    key = os.environ.get(variable or KEY, "").strip()
    if variable and not key:
        raise UsageError(f"the environment variable {variable} is not set", remedy=f"export {variable}=...")
    return key or None


def _candidate(target: str, checkpoint: str, root: Path, manner: Manner) -> ModelReference:
    from operant.api.runs import best_score, choose_checkpoint

    runs = runs_of(target, root)
    if runs is None:
        return of_model(target, manner)
    best = max(runs, key=best_score)
    return of_run(best, choose_checkpoint(best, checkpoint), manner)
