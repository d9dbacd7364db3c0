"""How the upload of a run fares, as its watcher says in the run directory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from operant.run.disk import write_json
from operant.run.layout import SYNC_FILE, shown, timestamp
from operant.run.redaction import redact


def write_status(experiment: Path, url: str, state: str, error: str | None) -> None:
    """Say how it fares: watching, failing, failed or done."""
    error = None if error is None else redact(error)
    status = {"url": url, "state": state, "error": error, "time": timestamp(), "pid": os.getpid()}
    write_json(experiment / SYNC_FILE, status)


def read_status(experiment: Path) -> dict[str, Any] | None:
    """What the last watcher of a run said: `url`, `state` (watching, failing, failed, done), `error` and `time`."""
    try:
        status = json.loads((experiment / SYNC_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return status if isinstance(status, dict) else None


def status_line(experiment: Path) -> str | None:
    """The same in one line; None for a run that was never synced."""
    status = read_status(experiment)
    if status is None:
        return None
    url, error = status.get("url"), status.get("error")
    if error is not None:
        return f"not everything is at {url}: {error}\n  try: operant sync {shown(experiment)} {url}"
    done = status.get("state") == "done"
    return f"stored at {url}" if done else f"being stored at {url}, last at {status.get('time')}"
