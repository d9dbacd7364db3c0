"""The tools that work on files: each does one thing in a workspace and says what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from operant.envs.research.commands import Misspoken
from operant.envs.research.workspace import Workspace
from operant.envs.sandbox import Ran

MEBIBYTE = 1 << 20
LAST_LINE = 10**9

# Both outputs in the order in which they were printed.
SHELL = 'exec 2>&1; eval "$1"'
# A pipe or a device might never end.
SHOW = """
exec 2>&1
if [ -d "$1" ]; then ls -lA -- "$1"
elif [ -e "$1" ] && [ ! -f "$1" ]; then echo 'it is no plain file'; exit 4
else sed -n "$2" -- "$1"
fi
"""


def bash(workspace: Workspace, arguments: Mapping[str, Any], seconds: float, environment: Mapping[str, str]) -> Ran:
    """Run a command with a shell of its own; nothing of it lives on but files."""
    argv = ["bash", "-c", SHELL, "bash", arguments["command"]]
    stdin = arguments.get("stdin", "").encode()
    return workspace.run(argv, stdin, seconds, environment)


def view(workspace: Workspace, arguments: Mapping[str, Any], seconds: float) -> Ran:
    """Lines of a file, or what is in a folder."""
    path, first, last = arguments["path"], arguments.get("from", 1), arguments.get("to", LAST_LINE)
    known = workspace.known(path)
    if known is not None:
        return Ran(0, b"".join(known.splitlines(keepends=True)[max(first, 1) - 1 : last]), b"", 0.0)
    lines = f"{max(first, 1)},{max(last, first, 1)}p"
    return workspace.run(["sh", "-c", SHOW, "sh", path, lines], b"", seconds, {}, changes=False)


def write(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    """Write a file."""
    path, data = arguments["path"], arguments["content"].encode()
    if not path:
        raise Misspoken("write needs path")
    workspace.write(path, data)
    return f"wrote {len(data)} bytes to {abridged(path)}"


def edit(workspace: Workspace, arguments: Mapping[str, Any], most: int) -> str:
    """Put new texts in place of old ones, of which each must occur exactly once."""
    path, olds, news = arguments["path"], arguments["old"], arguments["new"]
    text = workspace.read(path, most).decode(errors="surrogateescape")
    if len(olds) != len(news):
        raise Misspoken("edit needs a new text for every old one")
    for old, new in zip(olds, news, strict=True):
        times = text.count(old) if old else 0
        if times != 1:
            raise Misspoken(
                f"the old text occurs {times} times in {abridged(path)}; it must occur once, so nothing was done"
            )
        text = text.replace(old, new)
    workspace.write(path, text.encode(errors="surrogateescape"))
    return f"edited {abridged(path)}"


def abridged(words: str, most: int = 200) -> str:
    """Words of at most `most` characters, without the middle of those that are longer."""
    half = (most - 5) // 2
    return words if len(words) <= most else f"{words[:half]} ... {words[-half:]}"


def command_output(ran: Ran, most: int) -> str:
    """What a command printed, head and tail, and how it ended if not well."""
    words = shortened(ran.out, most, ran.dropped, ran.tail).rstrip("\n")
    if ran.timed_out:
        return f"{words}\n[ended: its time was over after {ran.seconds:.0f} s]".lstrip()
    if ran.killed:
        return f"{words}\n[killed: too much {ran.killed}]".lstrip()
    return f"{words}\n[exit {ran.code}]".lstrip() if ran.code else words


def shortened(data: bytes, most: int, dropped: int = 0, tail: bytes = b"") -> str:
    """Text of at most `most` bytes: the head and the end, and between them how much is missing.

    `dropped` bytes came after `data` and were not kept, but for the `tail` of them.
    """
    total = len(data) + dropped
    if total <= most:
        return (data + tail).decode(errors="replace")
    half = most // 2
    end = tail[-half:] if dropped > len(tail) else (data + tail)[-half:]
    missing = total - half - len(end)
    return f"{data[:half].decode(errors='replace')}\n[... {missing} bytes left out ...]\n{end.decode(errors='replace')}"
