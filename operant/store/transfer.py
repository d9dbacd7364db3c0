"""What a run directory and its store had in common last: by it a pull knows what was changed here since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from operant.run.disk import write_json
from operant.run.layout import TRANSFER_FILE, timestamp
from operant.store.manifest import Manifest


def remember(experiment: Path, url: str, unit: str, manifest: Manifest) -> None:
    """Note what of one unit is the same here and there."""
    noted = read_transfer(experiment)
    units = {**noted.get("units", {}), unit: {path: entry.sha256 for path, entry in manifest.files.items()}}
    write_json(experiment / TRANSFER_FILE, {"url": url, "time": timestamp(), "units": units})


def read_transfer(experiment: Path) -> dict[str, Any]:
    """The note; empty where there is none that can be read."""
    try:
        noted = json.loads((experiment / TRANSFER_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def common_hash(noted: dict[str, Any], unit: str, path: str) -> str | None:
    """The hash that a file had here and there after the last transfer."""
    return noted.get("units", {}).get(unit, {}).get(path)
