"""A sandbox by docker or podman, where an engine answers.

No engine runs where this is developed: the command lines are checked by tests, their effect is not.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence

from operant.envs.sandbox.base import CommandTooLong, Sandbox, SandboxDied
from operant.envs.sandbox.limits import Limits, Ran
from operant.envs.sandbox.running import Running

# The version of Python that runs here, so that packages of this one fit.
IMAGE = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
WORK = "/work"
ENGINES = ("docker", "podman")
GPU_OPTIONS = {"docker": "--gpus=all", "podman": "--device=nvidia.com/gpu=all"}
ENGINE_SECONDS = 120.0


class Container(Sandbox):
    """One container that waits; every program is an `exec` in it."""

    def __init__(self, limits: Limits, engine: str, readable: Sequence[str] = (), image: str = IMAGE) -> None:
        self.limits = limits
        self.python = "python3"
        self._engine = engine
        self._name = f"operant-{uuid.uuid4().hex}"
        line = container_command(engine, self._name, limits, image, readable)
        made = subprocess.run(line, capture_output=True, timeout=ENGINE_SECONDS)
        if made.returncode:
            raise SandboxDied(f"the sandbox did not open: {made.stderr.decode(errors='replace').strip()}")

    def start(
        self, argv: Sequence[str], *, environment: Mapping[str, str] | None = None, alone: bool = False
    ) -> Running:
        """Start a program. `alone` is not kept: what it leaves running lives until the container ends."""
        settings = [f"--env={name}={value}" for name, value in (environment or {}).items()]
        line = [self._engine, "exec", "--interactive", *settings, self._name, *argv]
        return Executed(line)

    def kill(self) -> None:
        subprocess.run([self._engine, "rm", "--force", self._name], capture_output=True, timeout=ENGINE_SECONDS)

    @property
    def alive(self) -> bool:
        asked = [self._engine, "inspect", "--format={{.State.Running}}", self._name]
        return subprocess.run(asked, capture_output=True, timeout=ENGINE_SECONDS).stdout.strip() == b"true"


class Executed(Running):
    """A program in a container, by the engine's client. Killed, the client leaves it to the container's end."""

    def __init__(self, line: Sequence[str]) -> None:
        (theirs_in, self.stdin), (self.stdout, theirs_out), (self.stderr, theirs_err) = os.pipe(), os.pipe(), os.pipe()
        try:
            self._client = subprocess.Popen(line, stdin=theirs_in, stdout=theirs_out, stderr=theirs_err)
        except OSError as problem:
            self.close()
            if problem.errno == errno.E2BIG:
                raise CommandTooLong from problem
            raise SandboxDied(f"the container engine cannot be asked: {problem}") from problem
        finally:
            for fd in (theirs_in, theirs_out, theirs_err):
                os.close(fd)

    def wait(self, seconds: float) -> Ran | None:
        try:
            return Ran(self._client.wait(seconds), b"", b"", 0.0)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        self._client.kill()


def container_command(engine: str, name: str, limits: Limits, image: str, readable: Sequence[str] = ()) -> list[str]:
    """The command that starts the waiting container."""
    line = [engine, "run", "--detach", "--rm", "--init", f"--name={name}", "--read-only"]
    line.append("--network=bridge" if limits.network else "--network=none")
    if limits.gpu:
        line.append(GPU_OPTIONS[engine])
    line += ["--user=65534:65534", "--cap-drop=ALL", "--security-opt=no-new-privileges", f"--workdir={WORK}"]
    line += [f"--memory={limits.memory}", f"--memory-swap={limits.memory}", f"--pids-limit={limits.processes}"]
    for area in (WORK, "/tmp"):
        line.append(f"--tmpfs={area}:rw,mode=1777,size={limits.disk},nr_inodes={limits.files}")
    line += [f"--volume={place}:{place}:ro" for place in readable]
    for kind, bound in (("cpu", limits.cpu_seconds), ("fsize", limits.file_size), ("nofile", limits.open_files)):
        line.append(f"--ulimit={kind}={bound}:{bound}")
    return [*line, image, "sleep", "infinity"]


@functools.cache
def engine(wanted: str | None = None) -> str | None:
    """The container engine that answers here, if one does; `wanted` is the only one to ask."""
    for name in ENGINES if wanted is None else (wanted,):
        if shutil.which(name):
            try:
                if subprocess.run([name, "info"], capture_output=True, timeout=10).returncode == 0:
                    return name
            except subprocess.TimeoutExpired:
                continue
    return None
