"""The arguments and options that several commands share, and how the shell completes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.completers import DEFAULT_ROOT as DEFAULT_ROOT
from operant.cli.completers import complete_run, complete_setting, complete_spec

_TARGET = typer.Argument(
    metavar="TARGET",
    help="A spec file (YAML, JSON, TOML), FILE:NAME, or a built-in name.",
    autocompletion=complete_spec,
    show_default=False,
)
Target = Annotated[str, _TARGET]
OptionalTarget = Annotated[str | None, _TARGET]
SpecName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Which spec, when the file holds several.", show_default=False),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run directory, a spec name (its newest run), NAME/STAMP, or `latest`.",
        autocompletion=complete_run,
        show_default=False,
    ),
]
RunNames = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="Run directories, spec names (their newest run), NAME/STAMP, or `latest`.",
        autocompletion=complete_run,
        show_default=False,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="SETTING",
        help="Take runs with the same value of a setting together, such as agent.algorithm.name.",
        show_default=False,
    ),
]
Price = Annotated[
    float | None,
    typer.Option(
        "--price",
        metavar="DOLLARS",
        min=0,
        help="What an hour of a machine costs, for runs without meta.price_per_hour.",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="Set any field (agent.algorithm.gamma=0.98) or fill a ${var}; may be repeated.",
        autocompletion=complete_setting,
        show_default=False,
    ),
]
TrainerFlags = Annotated[
    str | None,
    typer.Option(
        "--flags",
        metavar="FLAGS",
        help="Settings in the words of HackMatrix's trainer, such as '--num-envs 512 --lr 1e-4'.",
        show_default=False,
    ),
]
Sessions = Annotated[
    int | None, typer.Option("--sessions", metavar="N", min=1, help="Seeds to train; sets meta.max_session.")
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Seed of session 0; sets meta.seed.")]
Root = Annotated[Path, typer.Option("--root", metavar="DIR", help="Folder that holds the runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Plain = Annotated[bool, typer.Option("--plain", help="Plain lines instead of a live view.")]
Until = Annotated[
    int | None,
    typer.Option("--until", metavar="FRAMES", min=1, help="Pause at this many frames.", show_default=False),
]
CoordinatorAddress = Annotated[
    str | None,
    typer.Option(
        "--coordinator-address",
        metavar="HOST:PORT",
        help="Where process 0 of several listens; torchrun's MASTER_ADDR and MASTER_PORT say it too.",
        show_default=False,
    ),
]
NumProcesses = Annotated[
    int | None,
    typer.Option(
        "--num-processes", metavar="N", help="Processes that train together (or WORLD_SIZE).", show_default=False
    ),
]
ProcessId = Annotated[
    int | None,
    typer.Option(
        "--process-id", metavar="K", help="Which of them this is (or RANK); 0 leads and writes.", show_default=False
    ),
]
InitializationTimeout = Annotated[
    float | None,
    typer.Option(
        "--initialization-timeout",
        metavar="SECONDS",
        help="How long processes wait for each other at the start; 300 if not said.",
        show_default=False,
    ),
]
CheckpointName = Annotated[
    str, typer.Option("--checkpoint", metavar="WHICH", help="`best`, `latest`, or a number of frames.")
]
