"""Running the command-line tools of the places that jobs are sent to."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence

from operant.launch.jobs.job import LaunchError


def run_tool(command: Sequence[str], absent: LaunchError, unknown_job: str | None = None) -> str:
    """What a tool prints; `absent` if it is not installed, `LaunchError` with its last line if it refuses.

    Nothing instead, where the refusal has the words `unknown_job`: the place has forgotten the job.
    """
    if shutil.which(command[0]) is None:
        raise absent
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return ran.stdout
    if unknown_job is not None and unknown_job in ran.stderr:
        return ""
    cause = (ran.stderr.strip() or ran.stdout.strip() or f"exit code {ran.returncode}").splitlines()[-1]
    raise LaunchError(f"{command[0]} refused: {cause}", remedy=f"{shlex.join(command)}    (by hand)")
