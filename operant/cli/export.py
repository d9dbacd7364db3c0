"""`operant export`: a policy as a file that runs without Operant."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from operant.cli.options import DEFAULT_ROOT, AsJson, CheckpointName, Root, RunName
from operant.cli.output import document, say
from operant.errors import EXIT_DONE


class Format(StrEnum):
    """The formats, as a person may type them."""

    safetensors = "safetensors"
    torchscript = "torchscript"
    onnx = "onnx"
    numpy = "numpy"


def export(
    run: RunName,
    to: Annotated[Format, typer.Option("--to", help="Format of the file.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file; the run's name with a suffix by default.")
    ] = None,
    checkpoint: CheckpointName = "best",
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Write a policy to a file that takes raw observations and gives the environment's actions.

    Of several sessions the one with the best evaluation is taken. The file is run on 1,000 observations first, and
    written only if it agrees with the policy to 1e-5.

    \b
      operant export ppo_cartpole --to onnx
      operant export sac_pendulum --to numpy --out pendulum.npz --checkpoint latest
    """
    from operant.api.export import export as export_policy
    from operant.run.layout import shown

    made = export_policy(run, to=str(to), out=out, checkpoint=checkpoint, root=root)
    if as_json:
        document({**made.as_dict(), "exit": EXIT_DONE})
        return EXIT_DONE
    for file in made.files:
        say(shown(file))
    say(
        f"the policy of {shown(made.session.path)} at {made.checkpoint.at.frames:,} frames; "
        f"on {made.observations:,} observations it differs by {made.difference:.1g}"
    )
    return EXIT_DONE
