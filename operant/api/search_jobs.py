"""A search as a job elsewhere: workers, each a task that trains as many trials at once as its CPUs and GPUs hold."""

from __future__ import annotations

import sys
from pathlib import Path

from operant.api.search import begun
from operant.hpo.resources import lanes
from operant.hpo.study import Study
from operant.spec.load import Loaded
from operant.spec.schema import Spec


def begun_elsewhere(loaded: Loaded, workers: int, *, root: str | Path, out: str | Path | None) -> Study:
    """A new search that so many tasks will work on, with the database of OPERANT_STORAGE or a file in its folder."""
    together = workers * trials_at_once(loaded.spec)
    return begun(loaded, root=root, out=out, storage=None, workers=together, new=True)


def worker_tasks(study: Study) -> list[list[str]]:
    """The command of each worker; one that is started again goes on with what nobody trains."""
    command = [sys.executable, "-m", "operant", "search", str(study.path.resolve()), "--plain"]
    return [command] * max(1, study.workers // trials_at_once(study.spec))


def trials_at_once(spec: Spec) -> int:
    """How many trials fit into the CPUs and GPUs of one task; a process of the jax engine takes several."""
    task, each = spec.meta.launch, spec.meta.search_resources
    by_cpu = task.cpus // each.cpu
    return lanes(spec) * max(1, by_cpu if each.gpu == 0 else min(by_cpu, int(task.gpus / each.gpu + 1e-9)))
