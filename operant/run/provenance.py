"""What ran, from what, on what: enough to run it again and to name what differs if that fails.

Secrets stay out: of the environment only names are kept, with the values of a short list of
harmless ones, and secret values are blotted out of commands and diffs.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from operant.run.arithmetic import describe_arithmetic
from operant.run.disk import write_json, write_text
from operant.run.layout import FORMAT, provenance_path, timestamp
from operant.run.redaction import harmless_environment, redact, redact_command
from operant.run.source import record_source

LOCK_NAME = "uv.lock"
MAX_DIFF_CHARACTERS = 5_000_000
MAX_UNTRACKED = 1_000
GIT_SECONDS = 10
GPU_SECONDS = 5
GPU_FIELDS = ("name", "memory.total", "driver_version")


def capture(session: Path, attempt: int, command: Sequence[str], seeds: Mapping[str, int]) -> Path:
    """Write `provenance/attempt_NNN.json`, with `attempt_NNN.diff` beside it when the code is not as committed."""
    file = provenance_path(session, attempt)
    file.parent.mkdir(parents=True, exist_ok=True)
    repositories, diff = _describe_code()
    if diff:
        write_text(file.with_suffix(".diff"), redact(diff)[:MAX_DIFF_CHARACTERS])
    packages = installed_packages()
    document = {
        "format": FORMAT,
        "time": timestamp(),
        "command": redact_command(command),
        "seeds": dict(seeds),
        "git": repositories,
        "diff": file.with_suffix(".diff").name if diff else None,
        "source": record_source(file.parent),
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "packages": packages,
        "lock": _describe_lock(packages),
        "hardware": describe_hardware(),
        "arithmetic": describe_arithmetic(),
        "environment": harmless_environment(os.environ),
    }
    write_json(file, document)
    return file


def add_fact(session: Path, attempt: int, name: str, value: str) -> str | None:
    """Add a fact to an attempt's provenance; the same fact of the attempt before it, where that had one."""
    file = provenance_path(session, attempt)
    if file.is_file():
        write_json(file, {**json.loads(file.read_text(encoding="utf-8")), name: value})
    before = provenance_path(session, attempt - 1)
    return json.loads(before.read_text(encoding="utf-8")).get(name) if before.is_file() else None


@cache
def installed_packages() -> dict[str, str]:
    """Every installed distribution and its version; read once, for all sessions of a process.

    Of two with one name the first on the search path counts, as it does for imports.
    """
    found: dict[str, str] = {}
    for each in metadata.distributions():
        if each.metadata["Name"]:
            found.setdefault(each.metadata["Name"], each.version)
    return dict(sorted(found.items()))


def describe_hardware() -> dict[str, Any]:
    """Processor, memory and accelerators."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "gpus": _gpus(),
    }


def _describe_code() -> tuple[list[dict[str, Any]], str]:
    """The state of the git repositories we were started in and Operant lies in, and what is not committed there."""
    repositories: list[dict[str, Any]] = []
    diffs: list[str] = []
    roots: set[str] = set()
    for name, folder in (("working directory", Path.cwd()), ("operant", Path(__file__).parent)):
        root = _git(folder, "rev-parse", "--show-toplevel")
        if root is None or root in roots:
            continue
        roots.add(root)
        state, diff = _describe_repository(Path(root.strip()))
        repositories.append({"of": name, **state})
        diffs.append(diff)
    return repositories, "".join(diffs)


def _describe_repository(root: Path) -> tuple[dict[str, Any], str]:
    sha = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain", "--untracked-files=normal") or ""
    diff = _git(root, "diff", "--no-color", "--no-ext-diff", "HEAD") if sha and status.strip() else ""
    untracked = [line[3:] for line in status.splitlines() if line.startswith("??")]
    state = {
        "sha": sha.strip() if sha else None,
        "branch": (_git(root, "branch", "--show-current") or "").strip() or None,
        "dirty": bool(status.strip()),
        "untracked": untracked[:MAX_UNTRACKED],
    }
    return state, diff or ""


def _git(folder: Path, *words: str) -> str | None:
    """What git prints, or None where there is no git, no repository or no answer in time."""
    # Optional locks off: looking must never get in the way of a commit the user is making.
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    return _run(command, GIT_SECONDS)


def _run(command: list[str], seconds: float) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


def _describe_lock(packages: Mapping[str, str]) -> dict[str, str]:
    """The hash that names the exact set of packages: of the lock file, or else of the installed versions."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        file = folder / LOCK_NAME
        if file.is_file():
            return {"of": LOCK_NAME, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    lines = "\n".join(f"{name}=={version}" for name, version in packages.items())
    return {"of": "installed versions", "sha256": hashlib.sha256(lines.encode()).hexdigest()}


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    models = (line.split(":", 1)[1].strip() for line in lines if line.lower().startswith("model name"))
    return next(models, platform.processor() or None)


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _gpus() -> list[dict[str, str]]:
    if shutil.which("nvidia-smi") is None:
        return []
    query = f"--query-gpu={','.join(GPU_FIELDS)}"
    table = _run(["nvidia-smi", query, "--format=csv,noheader"], GPU_SECONDS) or ""
    return [dict(zip(GPU_FIELDS, line.split(", "), strict=False)) for line in table.splitlines()]


def running_command() -> list[str]:
    """The command that was run, for the record."""
    return ["operant", *sys.argv[1:]] if Path(sys.argv[0]).name in ("operant", "__main__.py") else list(sys.argv)
