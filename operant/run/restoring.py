"""What a checkpoint holds, so that a part that is missing or of another form is named in the error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.run.layout import shown

REMEDY = "keep env and agent as they were when the checkpoint was written, or start a new run"


class Saved(dict[str, Any]):
    """The named values of one part of a checkpoint; to ask for one that it lacks is a `RunError`."""

    def __init__(self, values: Mapping[str, Any], file: Path, part: str = "") -> None:
        super().__init__(values)
        self._file = file
        self._part = part

    def __missing__(self, name: str) -> Any:
        raise mismatch(self._file, f"{self._part}{name} is needed, but was not saved")


@contextmanager
def restoring(file: Path, part: str) -> Iterator[None]:
    """A value that is there but cannot be taken back, as when its shape is another, is a `RunError` too."""
    try:
        yield
    except (ValueError, TypeError, IndexError, RuntimeError, KeyError) as fault:
        raise mismatch(file, f"{part} cannot be taken back ({fault})") from fault


def mismatch(file: Path, what: str) -> RunError:
    """The refusal of a checkpoint that is whole, but of another run than this."""
    return RunError(f"the checkpoint does not fit: {what}", place=shown(file), remedy=REMEDY)
