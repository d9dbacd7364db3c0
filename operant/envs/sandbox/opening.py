"""Opening the best sandbox that this machine has, or saying which command would give it one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from operant.envs.sandbox import bubblewrap, docker
from operant.envs.sandbox.base import Sandbox
from operant.envs.sandbox.limits import Limits
from operant.envs.sandbox.process import LimitedProcess
from operant.errors import UsageError

Kind = Literal["auto", "bubblewrap", "docker", "podman", "process"]
REMEDY = "apt install bubblewrap"


def open_sandbox(
    kind: Kind = "auto",
    limits: Limits | None = None,
    files: Mapping[str, bytes] | None = None,
    *,
    readable: Sequence[str] = (),
    allow_unsafe: bool = False,
    shows_operant: bool = False,
) -> Sandbox:
    """A fresh sandbox with these files in its work area; close it, best by `with`.

    `auto` takes bubblewrap, else docker or podman, else, only with `allow_unsafe`, a limited process. `docker` takes
    podman where docker does not answer; `podman` takes nothing else.
    Folders of `readable` are shown inside at their own paths, read-only; a limited process sees everything anyway.
    Operant itself is hidden in them, unless `shows_operant` says that it is to run inside; its graders are always.
    """
    taken = _with_readable(chosen(kind, allow_unsafe), readable)
    sandbox = _open(taken, limits or Limits(), readable, shows_operant)
    try:
        sandbox.fill(files or {})
    except BaseException:
        sandbox.close()
        raise
    return sandbox


def require_sandbox(kind: Kind = "auto", readable: Sequence[str] = ()) -> None:
    """Refuse now, in one clear line, what would fail later for want of a safe sandbox that can show these folders."""
    _with_readable(chosen(kind, allow_unsafe=False), readable)


def _with_readable(kind: Kind, readable: Sequence[str]) -> Kind:
    """The same kind; a UsageError for a folder that it could not show, which nothing that runs in it can help."""
    if kind == "process":
        return kind
    for place in readable:
        closed = bubblewrap.closed_to_nobody(place, alone=kind != "bubblewrap")
        if closed is not None:
            way = "o+rX" if closed.samefile(place) else "o+x"
            raise UsageError(
                f"the sandbox cannot read {place}: its user may not enter {closed}",
                remedy=f"chmod {way} {closed}, or a Python environment in a folder that every user may enter",
            )
    return kind


def chosen(kind: Kind, allow_unsafe: bool) -> Kind:
    """The kind that will be opened; a UsageError where this machine has none that was asked for."""
    if kind == "process":
        return kind
    trouble = bubblewrap.trouble() if kind in ("auto", "bubblewrap") else None
    if kind == "bubblewrap" and trouble:
        raise UsageError(f"no sandbox: {trouble}", remedy=REMEDY)
    if kind in ("auto", "bubblewrap") and not trouble:
        return "bubblewrap"
    if found := docker.engine("podman") if kind == "podman" else docker.engine():
        return "podman" if found == "podman" else "docker"
    if kind in ("docker", "podman"):
        tried = "docker and podman" if kind == "docker" else kind
        raise UsageError(f"no container engine answers: tried {tried}", remedy=f"{kind} info")
    if allow_unsafe:
        return "process"
    raise UsageError(f"no safe place to run code: {trouble}, and no container engine answers", remedy=REMEDY)


def _open(kind: Kind, limits: Limits, readable: Sequence[str], shows_operant: bool) -> Sandbox:
    if kind == "bubblewrap":
        return bubblewrap.Bubblewrap(limits, readable, shows_operant)
    if kind == "process":
        return LimitedProcess(limits)
    return docker.Container(limits, kind, readable)
