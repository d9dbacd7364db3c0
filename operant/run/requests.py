"""What others may ask of a running session: to save a checkpoint, or to stop after one.

A request is a file in the session's directory, so it can come from any process that can write there. It changes when
a checkpoint is written or training ends, never what is learnt.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

from operant.run.disk import write_json

REQUEST_FILE = "request.json"
Request = Literal["save", "stop"]


def request(session: Path, what: Request) -> None:
    """Ask the session in that directory; it hears within one update. A session that is not running never does."""
    write_json(session / REQUEST_FILE, {**_read(session / REQUEST_FILE), what: True})


def take_requests(session: Path) -> set[str]:
    """What was asked since the last call; asked once per update, so a session without requests pays one look."""
    file = session / REQUEST_FILE
    if not os.path.exists(file):
        return set()
    taken = file.with_suffix(".taken")
    with suppress(OSError):
        os.replace(file, taken)
    asked = {name for name, value in _read(taken).items() if value is True}
    with suppress(OSError):
        taken.unlink()
    return asked


def _read(file: Path) -> dict[str, object]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
