"""The arguments and options that several commands share, and how the shell completes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_ROOT = "runs"


def complete_spec(incomplete: str) -> list[str]:
    """Names of built-in specs, and spec files nearby."""
    from operant.spec.load import builtin_names

    files = [str(path) for suffix in ("yaml", "yml", "json", "toml") for path in Path().glob(f"*.{suffix}")]
    return [name for name in [*(row[0] for row in builtin_names()), *files] if name.startswith(incomplete)]


def complete_run(incomplete: str) -> list[str]:
    """`latest`, spec names and name/stamp pairs under the default root."""
    root = Path(DEFAULT_ROOT)
    found = ["latest", *(path.relative_to(root).as_posix() for depth in ("*", "*/*") for path in root.glob(depth))]
    return sorted(name for name in found if name.startswith(incomplete))


Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A spec file (YAML, JSON, TOML), FILE:NAME, or a built-in name.",
        autocompletion=complete_spec,
        show_default=False,
    ),
]
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
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="Set any field (agent.algorithm.gamma=0.98) or fill a ${var}; may be repeated.",
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
Root = Annotated[Path, typer.Option("--root", metavar="DIR", help="Folder that holds the runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Plain = Annotated[bool, typer.Option("--plain", help="Plain lines instead of a live view.")]
Until = Annotated[
    int | None,
    typer.Option("--until", metavar="FRAMES", min=1, help="Pause at this many frames.", show_default=False),
]
CheckpointName = Annotated[
    str, typer.Option("--checkpoint", metavar="WHICH", help="`best`, `latest`, or a number of frames.")
]
