"""`operant serve`: a language model for OpenAI's clients."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operant.cli.candidates import Device, Dtype, Manner, RunOrModel, of_model, of_run, runs_of
from operant.cli.options import DEFAULT_ROOT, AsJson, CheckpointName, Root
from operant.cli.speak import aside, document, say
from operant.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from operant.engines.language.examination import Candidate


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
    if template not in ("chat", "raw"):
        raise UsageError(f"there is no template {template!r}", remedy="--template chat, or --template raw")
    # A mistake is told before the slow imports.
    candidate = _candidate(target, checkpoint, root, Manner(device, dtype))
    from operant.engines import part

    server = part("language", "serve").Server(host, port)
    service = part("language", "service").Service(
        candidate.policy(), name or target, slots=slots, allow_load=allow_load, template=template
    )
    if as_json:
        document({"url": server.url, "model": service.name, "context": service.policy.context, "exit": EXIT_DONE})
        sys.stdout.flush()
    else:
        say(f"{service.name} at {server.url}; Ctrl-C ends it")
    # Said here, for a program started in the background of a shell would not hear of Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        server.attend(service)
    except KeyboardInterrupt:
        aside("ended")
    return EXIT_DONE


def _candidate(target: str, checkpoint: str, root: Path, manner: Manner) -> Candidate:
    from operant.cli.play import best_score, choose_checkpoint

    runs = runs_of(target, root)
    if runs is None:
        return of_model(target, manner)
    best = max(runs, key=best_score)
    return of_run(best, choose_checkpoint(best, checkpoint), manner)
