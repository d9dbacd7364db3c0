"""Pins the whole dependency tree: rewrites the block between two marker lines in pyproject.toml.

Run `scripts/uv run scripts/pin.py` after a dependency was added, or to move every package to its newest version.
The tree is resolved from the registry alone, in a scratch copy without the old pins, so that the machine it runs on
leaves no trace: neither local builds of a package nor download hosts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

BEGIN = "    # pins: begin (written by scripts/pin.py)"
END = "    # pins: end"
ROOT = Path(__file__).resolve().parent.parent


def split(text: str) -> tuple[str, str, str]:
    """The manifest before, inside and after the pinned block."""
    head, begin, rest = text.partition(BEGIN + "\n")
    block, end, tail = rest.partition(END + "\n")
    if not (begin and end):
        raise SystemExit(f"pyproject.toml lacks the lines {BEGIN.strip()!r} and {END.strip()!r}")
    return head + begin, block, end + tail


def resolve(manifest: str) -> dict[str, set[str]]:
    """Every package of the tree, all extras and groups included, and the versions chosen for it."""
    environment = {key: value for key, value in os.environ.items() if key != "UV_FIND_LINKS"}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pyproject.toml").write_text(manifest)
        subprocess.run([os.environ.get("UV", "uv"), "lock", "--directory", folder], check=True, env=environment)
        lock = tomllib.loads(Path(folder, "uv.lock").read_text())
    versions: dict[str, set[str]] = {}
    for package in lock["package"]:
        if "registry" in package["source"]:
            versions.setdefault(package["name"], set()).add(package["version"])
    return versions


def pins(versions: dict[str, set[str]], by_hand: set[str]) -> list[str]:
    """One exact requirement per package, but for those whose versions are chosen by hand."""
    lines = []
    for name in sorted(versions.keys() - by_hand):
        if len(versions[name]) > 1:
            raise SystemExit(f"{name} has several versions {sorted(versions[name])}: choose by hand, above the block")
        lines.append(f"{name}=={versions[name].pop()}")
    return lines


def main() -> None:
    """Rewrites the block and says what changed."""
    path = ROOT / "pyproject.toml"
    head, block, tail = split(path.read_text())
    constraints = tomllib.loads(head + tail)["tool"]["uv"]["constraint-dependencies"]
    by_hand = {re.split(r"[^\w.-]", line)[0] for line in constraints}
    new = pins(resolve(head + tail), by_hand)
    old = re.findall(r'"(.+)"', block)
    path.write_text(head + "".join(f'    "{pin}",\n' for pin in new) + tail)
    for pin in sorted(set(old) ^ set(new)):
        print("+" if pin in new else "-", pin)
    print(f"{len(new)} packages pinned, {', '.join(sorted(by_hand))} by hand", file=sys.stderr)


if __name__ == "__main__":
    main()
