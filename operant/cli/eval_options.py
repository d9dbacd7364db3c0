"""The options of `operant eval --tasks`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operant.cli.model_references import Manner
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.engines.language.evaluation.evaluator import EvalSet

Tasks = Annotated[
    str | None,
    typer.Option("--tasks", metavar="A,B", help="Evaluate a language model on these tasks; see `operant tasks`."),
]
Shots = Annotated[int | None, typer.Option("--shots", metavar="N", min=0, help="Solved examples before each problem.")]
Samples = Annotated[
    int, typer.Option("--samples", metavar="K", min=1, help="Answers to each problem, for pass@1 to pass@K.")
]
Limit = Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="At most N problems of each task.")]
TaskArguments = Annotated[
    list[str] | None,
    typer.Option(
        "--argument",
        "-a",
        metavar="KEY=VALUE",
        help="An argument of the tasks (shots=4), or of one (gsm8k.shots=4); may be repeated.",
        show_default=False,
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option("--temperature", metavar="T", min=0, help="0 for one sample and 1 for several by default."),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for the records of a bare model.")]
Follow = Annotated[bool, typer.Option("--follow", help="Evaluate each new checkpoint until the run is over.")]
Harness = Annotated[
    str | None,
    typer.Option("--harness", metavar="NAME", help="lm_eval, or lm_eval:hf for its own backend on the checkpoint."),
]
Search = Annotated[
    str | None,
    typer.Option(
        "--search",
        metavar="POLICY",
        help="Search a tree of rollouts of a task of many turns: best_of_n, bfs or ucb; ucb:nodes=12,width=3.",
    ),
]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="Let this server write the answers.")]


@dataclass(frozen=True)
class EvalOptions:
    """The options of an evaluation on tasks."""

    tasks: str | None = None
    shots: int | None = None
    samples: int = 1
    limit: int | None = None
    arguments: list[str] = field(default_factory=list)
    temperature: float | None = None
    seed: int | None = None
    out: Path | None = None
    follow: bool = False
    harness: str | None = None
    manner: Manner = field(default_factory=Manner)
    search: str | None = None

    def refuse_without_tasks(self) -> None:
        """Refuse the options that need --tasks."""
        for name in ("shots", "limit", "arguments", "temperature", "out", "follow", "harness", "search"):
            if getattr(self, name) not in (None, False, []):
                raise UsageError(
                    f"--{name.rstrip('s') if name == 'arguments' else name} needs --tasks", remedy="--tasks gsm8k"
                )
        if self.samples != 1 or self.manner != Manner():
            raise UsageError("--samples, --device, --dtype and --url need --tasks", remedy="--tasks gsm8k")

    def eval_set(self, seed: int) -> EvalSet:
        """The evaluation set; `seed` is the one to use where the options name none."""
        from operant.cli.tasks import parsed
        from operant.engines import part

        names = tuple(dict.fromkeys(name.strip() for name in (self.tasks or "").split(",") if name.strip()))
        if not names:
            raise UsageError("--tasks names no task", remedy="--tasks gsm8k,math    (operant tasks lists them)")
        shots = {} if self.shots is None else {"shots": self.shots}
        chosen = seed if self.seed is None else self.seed
        if self.search is not None and self.samples > 1:
            raise UsageError("--samples has no effect with --search", remedy="--search best_of_n:nodes=N")
        return part("language", "evaluation.evaluator").EvalSet(
            names,
            shots | parsed(self.arguments),
            self.samples,
            self.temperature,
            limit=self.limit,
            seed=chosen,
            search=part("language", "rollouts.tree_search").parse_search(self.search) if self.search else None,
        )
