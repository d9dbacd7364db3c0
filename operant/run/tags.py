"""Words that people put on an experiment, and whether it was put away: `tags.json` in its folder.

They are no part of the record: nothing reads them but lists of runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.run.disk import disk_guard, write_json
from operant.run.layout import TAGS_FILE

_TAG = re.compile(r"\w[\w.:@/-]{0,63}")


@dataclass(frozen=True)
class Tags:
    """The tags of an experiment, in order; an archived one is left out of lists unless it is asked for."""

    tags: tuple[str, ...] = ()
    archived: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The content of tags.json."""
        return {"tags": list(self.tags), "archived": self.archived}


def read_tags(experiment: Path) -> Tags:
    """The tags of an experiment; none where the file is missing or no longer what Operant wrote."""
    try:
        document = json.loads((experiment / TAGS_FILE).read_bytes())
        return Tags(tuple(str(tag) for tag in document.get("tags", ())), bool(document.get("archived", False)))
    except (OSError, ValueError, AttributeError, TypeError):
        return Tags()


def change_tags(experiment: Path, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Tags:
    """Add and remove tags; `UsageError` for a word that cannot be one, before anything is changed."""
    added, removed = list(add), set(remove)
    for tag in added:
        if not _TAG.fullmatch(tag):
            raise UsageError(
                f"{tag!r} cannot be a tag: up to 64 letters, digits and . _ : @ / -, the first a letter or a digit"
            )
    before = read_tags(experiment)
    kept = [tag for tag in dict.fromkeys([*before.tags, *added]) if tag not in removed]
    return _write(experiment, Tags(tuple(kept), before.archived))


def set_archived(experiment: Path, archived: bool) -> Tags:
    """Put an experiment away, or bring it back; nothing of it is moved or deleted."""
    return _write(experiment, Tags(read_tags(experiment).tags, archived))


def _write(experiment: Path, tags: Tags) -> Tags:
    file = experiment / TAGS_FILE
    try:
        with disk_guard(file, experiment):
            write_json(file, tags.as_dict())
    except OSError as error:
        raise UsageError(f"the file cannot be written: {error.strerror or error}", place=str(file)) from None
    return tags
