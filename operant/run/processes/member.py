"""What processes of one session must have in common, and what is said where they have not."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from operant.run.processes.connection import Message
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.provenance import installed_packages
from operant.run.source import source_files

COMPARED_PACKAGES = ("jax", "jaxlib", "torch", "numpy")


def introduction(world: DistributedConfig, spec: Mapping[str, Any] | None) -> Message:
    """What a process says of itself; `spec` is None where it was given none, as `operant resume` is."""
    packages = installed_packages()
    return {
        "process_id": world.process_id,
        "num_processes": world.num_processes,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "code": hashlib.sha256(json.dumps(source_files()).encode()).hexdigest(),
        "versions": {
            "Python": platform.python_version(),
            **{name: packages.get(name, "none") for name in COMPARED_PACKAGES},
        },
        "spec": None if spec is None else json.loads(json.dumps(spec)),
    }


def disagreement(leader: Message, other: Message) -> str | None:
    """Why the other process cannot be one of the leader's; None where it can."""
    whose = f"process {other['process_id']} on {other['host']}"
    if other["num_processes"] != leader["num_processes"]:
        return f"{whose} counts {other['num_processes']} processes, and process 0 {leader['num_processes']}"
    for name, version in leader["versions"].items():
        there = other["versions"].get(name, "none")
        if there != version:
            return f"{whose} has {name} {there}, and process 0 has {version}"
    if other["code"] != leader["code"]:
        return f"{whose} has another Operant than process 0: the source files differ"
    if leader["spec"] is not None and other["spec"] is not None:
        for path, mine, theirs in _differences(leader["spec"], other["spec"]):
            return f"{whose} has another spec: {path} is {theirs} there and {mine} for process 0"
    return None


def _differences(mine: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in (*mine, *(key for key in theirs if key not in mine)):
            yield from _differences(mine.get(key), theirs.get(key), f"{path}.{key}" if path else key)
    elif mine != theirs:
        yield path, json.dumps(mine), json.dumps(theirs)
