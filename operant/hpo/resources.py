"""How many trials run at once on this machine, and which cores and GPUs each sees."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field

from operant.envs.cores import cores_here
from operant.errors import UsageError
from operant.launch.budget import usable_cores
from operant.spec.settings.search import SearchResourcesSpec

VISIBLE = "CUDA_VISIBLE_DEVICES"
SMI_SECONDS = 10


@dataclass(frozen=True)
class Slot:
    """Room for one trial: so many cores, and the variables that show it its GPUs."""

    cores: int
    environment: dict[str, str] = field(default_factory=dict)


def slots(asked: SearchResourcesSpec, cores: int | None = None, gpus: list[str] | None = None) -> list[Slot]:
    """The trials that fit on this machine at once, at least one; `UsageError` where a trial asks for absent GPUs.

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
