"""How many processes of a search run at once on this machine, which cores and GPUs each sees, and how many trials."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field

from operant.engines import trains_together
from operant.envs.cores import cores_here
from operant.errors import UsageError
from operant.launch.budget import usable_cores
from operant.spec.schema import Spec
from operant.spec.settings.search import SearchResourcesSpec

VISIBLE = "CUDA_VISIBLE_DEVICES"
SMI_SECONDS = 10
DEFAULT_LANES = 8


@dataclass(frozen=True)
class Slot:
    """Room for one process: so many cores, and the variables that show it its GPUs."""

    cores: int
    environment: dict[str, str] = field(default_factory=dict)


def slots(asked: SearchResourcesSpec, cores: int | None = None, gpus: list[str] | None = None) -> list[Slot]:
    """The processes that fit on this machine at once, at least one; `UsageError` where one asks for absent GPUs.

    With a fraction of a GPU each, slots are dealt to the GPUs in turn until every GPU is full. Without GPUs asked for,
    what the environment shows is left as it is.
    """
    at_once = max(1, (cores or min(usable_cores(), cores_here())) // asked.cpu)
    if asked.gpu == 0:
        return [Slot(asked.cpu)] * at_once
    gpus = visible_gpus() if gpus is None else gpus
    shares = _shares(asked.gpu, gpus)
    if not shares:
        raise UsageError(
            f"meta.search_resources.gpu = {asked.gpu:g}, and this machine shows {len(gpus)} GPUs",
            remedy="-s meta.search_resources.gpu=0    (trains on the CPU, or on what meta.device finds)",
        )
    return [Slot(asked.cpu, {VISIBLE: ",".join(each)}) for each in shares[:at_once]]


def lanes(spec: Spec) -> int:
    """The trials that a slot trains at once: 1 where the spec's engine trains one in a process."""
    asked = spec.meta.search_resources.lanes
    return asked or (DEFAULT_LANES if trains_together(spec) else 1)


def side_by_side(spec: Spec) -> int:
    """The trials that are computed as one batch.

    On a GPU a wider batch costs little, so all of a process; their last bits then depend on this number. On the CPU it
    would cost as much as one trial after another, which gives each the bytes of a run of its own.
    """
    return lanes(spec) if spec.meta.search_resources.gpu > 0 else 1


def _shares(gpu: float, gpus: list[str]) -> list[list[str]]:
    """The GPUs of each trial: several whole ones, or one that is shared."""
    if gpu >= 1:
        each = int(-(-gpu // 1))
        return [gpus[start : start + each] for start in range(0, len(gpus) - each + 1, each)]
    return [[name] for _ in range(int(1 / gpu + 1e-9)) for name in gpus]


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, by the names that CUDA takes."""
    named = os.environ.get(VISIBLE)
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]
    try:
        said = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=SMI_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(index) for index, line in enumerate(said.stdout.splitlines()) if line.startswith("GPU ")]
