"""A sandbox by bubblewrap: namespaces of its own for everything, made in hundredths of a second, without rights."""

from __future__ import annotations

import functools
import glob
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from operant.envs.sandbox import cgroup
from operant.envs.sandbox.base import Sandbox, SandboxDied
from operant.envs.sandbox.keeper import Keeper
from operant.envs.sandbox.limits import Limits
from operant.envs.sandbox.running import Running
from operant.envs.sandbox.seccomp import filter_program
from operant.envs.secret import secret_file

NOBODY = 65534
PACKAGE = str(Path(__file__).resolve().parents[2])
GRADERS = "envs/research/tasks"
WORK = "/work"
TRIES = 3  # of whether it works at all
SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
NAME_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/ca-certificates")
# `python` and `python3` mean the interpreter that packages of this Python fit, whatever the system's is.
PROGRAMS = "/programs"
ENVIRONMENT = {"PATH": f"{PROGRAMS}:/usr/local/bin:/usr/bin:/bin", "HOME": WORK, "LANG": "C.UTF-8"}


class Bubblewrap(Sandbox):
    """Everything unshared, the system read-only, a work area in memory with a cap, as nobody."""

    def __init__(self, limits: Limits, readable: Sequence[str] = (), shows_operant: bool = False) -> None:
        self.limits = limits
        self.python, prefix = interpreter()
        places = [*readable, *([prefix] if prefix else [])]
        with seccomp_file() as filter_fd:
            wrapper = command(limits, places, filter_fd, shows_operant)
            self._keeper = Keeper(self.python, limits, wrapper, pass_fds=(filter_fd,), **as_nobody())

    def start(
        self, argv: Sequence[str], *, environment: Mapping[str, str] | None = None, alone: bool = False
    ) -> Running:
        return self._keeper.start(argv, {**ENVIRONMENT, **(environment or {})}, alone)

    def kill(self) -> None:
        self._keeper.kill()

    @property
    def alive(self) -> bool:
        return self._keeper.alive


@contextmanager
def seccomp_file() -> Iterator[int]:
    """The filter in an unnamed file, open while bubblewrap is started."""
    fd = os.memfd_create("seccomp")
    try:
        os.write(fd, filter_program(counted=bool(cgroup.parents())))
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def command(limits: Limits, readable: Sequence[str], filter_fd: int, shows_operant: bool = False) -> list[str]:
    """The command line before the program. The root and /dev are memory too, so they are shut after they are filled."""
    line = ["bwrap", "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session"]
    line += ["--as-pid-1", "--cap-drop", "ALL", "--clearenv", "--hostname", "sandbox"]
    line += ["--uid", str(NOBODY), "--gid", str(NOBODY), "--ro-bind", "/usr", "/usr"]
    for folder in SYSTEM_FOLDERS:
        if os.path.islink(folder):
            line += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            line += ["--ro-bind", folder, folder]
    # Debian's awk, vi and others are links through this folder.
    line += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    for name in ("python", "python3"):
        line += ["--symlink", interpreter()[0], f"{PROGRAMS}/{name}"]
    line += ["--proc", "/proc", "--dev", "/dev"]
    if not cgroup.parents():  # it reads alike, but cannot be mapped as pages that no process is counted for
        line += ["--dev-bind", "/dev/full", "/dev/zero"]
    for area in (WORK, "/tmp"):
        line += ["--size", str(limits.disk), "--tmpfs", area]
    for place in readable:
        line += ["--ro-bind", place, place]
    for place in concealed(["/usr", *SYSTEM_FOLDERS, *readable], shows_operant):
        line += ["--tmpfs", place, "--remount-ro", place]
    secret = os.path.realpath(secret_file())
    if os.path.exists(secret) and _is_below(secret, ["/usr", *SYSTEM_FOLDERS, *readable]):
        line += ["--ro-bind", "/dev/null", secret]
    line += [*(network_options() if limits.network else ()), *(gpu_options() if limits.gpu else ())]
    # Through /proc a program could take back that its sandbox is the first to go when memory is short.
    line += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK]
    return [*line, "--seccomp", str(filter_fd)] if filter_program() else line


def concealed(shown: Sequence[str], shows_operant: bool = False) -> list[str]:
    """What must not be seen of the places that are shown: Operant itself, or at least its graders, and the datasets."""
    private = [
        f"{PACKAGE}/{GRADERS}" if shows_operant else PACKAGE,
        *map(os.path.realpath, filter(None, [os.environ.get("OPERANT_DATA")])),
    ]
    return [place for place in private if _is_below(place, shown) and os.path.isdir(place)]


def _is_below(place: str, folders: Sequence[str]) -> bool:
    return any(place.startswith(os.path.join(os.path.realpath(folder), "")) for folder in folders)


def network_options() -> list[str]:
    """The machine's own network, and the files by which names and certificates are found."""
    shown = [part for place in NAME_FILES for part in ("--ro-bind-try", place, place)]
    return ["--share-net", *shown]


def gpu_options() -> list[str]:
    """Every device of the accelerators' driver, and what its library reads to find them.

    No accelerator is where this is developed: the command line is checked by a test, its effect is not.
    """
    devices = [part for device in sorted(glob.glob("/dev/nvidia*")) for part in ("--dev-bind", device, device)]
    return [*devices, "--ro-bind-try", "/sys", "/sys"]


def as_nobody() -> dict[str, object]:
    """For root only: give up all rights before bubblewrap starts, for the kernel counts no processes of root."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"} if os.geteuid() == 0 else {"cwd": "/"}


@functools.cache
def interpreter() -> tuple[str, str | None]:
    """The Python of the sandbox, and the folder that must be shown for it, if it is not the system's.

    Ours if others may read its folder, so that both sides run one version; else the system's.
    """
    prefix = os.path.realpath(sys.base_prefix)
    ours = f"{prefix}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    if prefix.startswith("/usr") and os.path.exists(ours):
        return ours, None
    if os.path.exists(ours) and (os.geteuid() != 0 or open_to_all(Path(prefix))):
        return ours, prefix
    return "/usr/bin/python3", None


def open_to_all(folder: Path) -> bool:
    """Whether every user may pass through to this folder."""
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


def closed_to_nobody(place: str, alone: bool = False) -> Path | None:
    """The first folder or file on the way to `place` that a sandbox's user may not enter or read; None if it may all.

    That user is nobody where this one is root, and else this one. `alone` looks at the place itself only, as nobody:
    a container's engine finds the way to it, but does not show it as this user.
    """
    named, real = Path(os.path.abspath(place)), Path(place).resolve()
    way = [] if alone else [each for path in (named, real) for each in reversed(path.parents)]
    for each, wanted in [*((each, os.X_OK) for each in way), (real, os.R_OK | os.X_OK * real.is_dir())]:
        if not (each.stat().st_mode & wanted == wanted if alone or os.geteuid() == 0 else os.access(each, wanted)):
            return each
    return None


@functools.cache
def trouble() -> str | None:
    """Why bubblewrap cannot be used on this machine; None if it can. It is found out once.

    A sandbox that dies is tried again: somebody may have killed it, and the answer holds for the whole run.
    """
    if not shutil.which("bwrap"):
        return "bubblewrap (the program bwrap) is not installed"
    cause = ""
    for _ in range(TRIES):
        try:
            with Bubblewrap(Limits()) as sandbox:
                ran = sandbox.run(["true"], seconds=5)
            return None if ran.code == 0 else f"a program in it failed: {ran.err.decode(errors='replace').strip()}"
        except SandboxDied as died:
            cause = died.cause
    return cause
