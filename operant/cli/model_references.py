"""Language models as the command line names them: a run with its checkpoint, or a model by itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operant.cli.completers import complete_run
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.engines.language.evaluation.evaluator import ModelReference
    from operant.run.checkpoint import Checkpoint
    from operant.run.run import Run

DEVICES, DTYPES = ("auto", "cpu", "cuda"), ("float32", "bfloat16")

RunOrModel = Annotated[
    str,
    typer.Argument(
        metavar="RUN|MODEL",
        help="A run, or a model: a Hugging Face folder or id, a .gguf file, a name of `operant models`.",
        autocompletion=complete_run,
        show_default=False,
    ),
]
Device = Annotated[
    str | None, typer.Option("--device", metavar="DEVICE", help="auto, cpu or cuda; the run's own by default.")
]
Dtype = Annotated[
    str | None, typer.Option("--dtype", metavar="KIND", help="float32 or bfloat16; the run's own by default.")
]


@dataclass(frozen=True)
class Manner:
    """How a model is to be loaded; what is None is as the run says."""

    device: str | None = None
    dtype: str | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        for name, value, known in (("device", self.device, DEVICES), ("dtype", self.dtype, DTYPES)):
            if value not in (None, *known):
                raise UsageError(f"there is no {name} {value!r}", remedy=f"--{name} {' or '.join(known)}")


def runs_of(target: str, root: Path) -> list[Run] | None:
    """The sessions of the run that is meant, or None where a model is."""
    from operant.cli.opening import open_place
    from operant.run.run import find_sessions

    if is_model_file(Path(target)):
        return None
    try:
        found = find_sessions(open_place(target, root))
    except UsageError:
        _check_model(target)
        return None
    for run in found:
        refuse_other_engines(run)
    return found


def is_model_file(path: Path) -> bool:
    """Whether a path is a Hugging Face folder, such as a checkpoint of a run, or a GGUF file."""
    return path.suffix == ".gguf" or (path / "config.json").is_file()


def refuse_other_engines(run: Run) -> None:
    """Only runs of the language engine have a language model."""
    from operant.run.layout import shown
    from operant.spec.stored import stored

    engine = stored(run.spec).engine_name
    if engine != "language":
        raise UsageError(
            f"this run is of the {engine} engine and has no language model",
            place=shown(run.path),
            remedy=f"operant eval {shown(run.path)}",
        )


def of_run(run: Run, checkpoint: Checkpoint, manner: Manner) -> ModelReference:
    """A checkpoint, prompted as in its run."""
    from operant.engines import part
    from operant.spec.stored import stored

    spec = stored(run.spec)
    own = spec.agent.model.dtype if spec.agent.model else "float32"
    slots = spec.agent.model.slots if spec.agent.model else 256
    return part("language", "evaluation.evaluator").ModelReference(
        source=str(checkpoint.path),
        device=manner.device or spec.meta.device,
        dtype=manner.dtype or own,
        spec=spec,
        url=manner.url,
        slots=slots,
    )


def of_model(source: str, manner: Manner) -> ModelReference:
    """A model by itself."""
    from operant.engines import part

    kind = part("language", "evaluation.evaluator").ModelReference
    return kind(source, manner.device or "auto", manner.dtype or "float32", url=manner.url)


def _check_model(target: str) -> None:
    from operant.engines import part

    try:
        part("language", "policy.model").check_source(target)
    except UsageError as problem:
        if problem.remedy and problem.remedy.endswith(target):
            raise
        raise UsageError(
            f"there is no run and no model {target!r}",
            remedy="`operant runs` lists the runs, `operant models` the models that can be fetched",
        ) from None
