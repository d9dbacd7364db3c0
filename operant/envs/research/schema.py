"""What a task.yaml may say. Closed: a key that nobody reads is a mistake."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from operant.envs.sandbox import Limits

MEBIBYTE = 1 << 20
MOST_CPU_SECONDS = 24 * 3600

Direction = Literal["up", "down"]


class Closed(BaseModel):
    """A section of the file (abstract)."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def inside(path: str) -> str:
    """A path below the workspace, by its plain name."""
    parts = path.split("/")
    if not path or path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError("must be a plain path below the workspace, such as model.py or out/answer.csv")
    return path


def artefact(path: str) -> str:
    """A path below the workspace; with a slash at its end, a folder with all its files."""
    return inside(path.removesuffix("/")) + "/" * path.endswith("/")


Inside = Annotated[str, AfterValidator(inside)]
Artefact = Annotated[str, AfterValidator(artefact)]


class Metric(Closed):
    """What is measured, and which way is better."""

    name: str
    direction: Direction


class Budget(Closed):
    """What a rollout may use. `seconds` are for one command, `total_seconds` for all of them together."""

    turns: int = Field(default=20, ge=1)
    seconds: float = Field(default=60.0, gt=0)
    total_seconds: float = Field(default=900.0, gt=0)
    validations: int = Field(default=3, ge=0)
    memory_mb: int = Field(default=512, ge=32)
    disk_mb: int = Field(default=128, ge=1)
    artefact_mb: int = Field(default=16, ge=1)
    processes: int = Field(default=32, ge=1)
    network: bool = False
    gpu: bool = False

    def sandbox(self) -> Limits:
        """The same for the sandbox."""
        return Limits(
            cpu_seconds=min(MOST_CPU_SECONDS, int(self.total_seconds) + 1),
            memory=self.memory_mb * MEBIBYTE,
            disk=self.disk_mb * MEBIBYTE,
            file_size=self.disk_mb * MEBIBYTE,
            processes=self.processes,
            network=self.network,
            gpu=self.gpu,
        )


class TaskFile(Closed):
    """The whole file.

    `prompt` describes the problem to the agent; how to use the tools and what is left is added. `bare` is a prompt
    of one short line for models that read bytes. `visible` are files of visible/ that the agent finds in its
    workspace (all of them, unless said), or `data:NAME` for a data file; `artefacts` are the files that are graded,
    or folders such as `checkpoints/`. `noise` is the standard deviation of a hidden score over seeds. `data` names
    files below OPERANT_DATA, and `packages` what programs in the sandbox may import besides the standard library.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    about: str = Field(max_length=100)
    prompt: str
    bare: str = ""
    visible: tuple[str, ...] | None = None
    artefacts: tuple[Artefact, ...] = Field(min_length=1)
    metric: Metric
    baseline: float = Field(allow_inf_nan=False)
    ceiling: float = Field(allow_inf_nan=False)
    noise: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    limits: Budget = Field(default_factory=Budget)
    data: dict[Inside, str] = {}
    packages: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _ceiling_is_better(self) -> TaskFile:
        sign = 1 if self.metric.direction == "up" else -1
        if sign * (self.ceiling - self.baseline) <= 0:
            raise ValueError(f"the ceiling must lie {self.metric.direction} from the baseline")
        return self
