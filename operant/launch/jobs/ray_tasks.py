"""A process that a Ray task runs on the node that Ray chose."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from operant.envs.cores import CORES_VARIABLE


def run_task(argv: Sequence[str], folder: str, log: str, cores: int, variables: Mapping[str, str] | None = None) -> int:
    """Run one task with these further variables, its output appended to `log`; returns its exit code."""
    with Path(log).open("ab") as out:
        environment = {**os.environ, CORES_VARIABLE: str(cores), **(variables or {})}
        process = subprocess.Popen(argv, cwd=folder, stdout=out, stderr=subprocess.STDOUT, env=environment)
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
