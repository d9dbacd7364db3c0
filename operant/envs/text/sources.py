"""Where the files of a task lie: in the places that its argument `data` names, else in those in OPERANT_DATA.

A place is a local folder, or an address on S3 or the hub (`operant/store`); several are divided by commas and looked
through in their order. A place holds one folder per dataset, such as `gsm8k/train.jsonl`; the dataset's own folder may
be named too. Operant ships no dataset and fetches none unasked.
"""

from __future__ import annotations

import gzip
import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.store.addresses import is_address, local_copy

VARIABLE = "OPERANT_DATA"

Row = dict[str, Any]


def find_file(task: str, folder: str, file: str, data: str | os.PathLike[str] | None) -> Path:
    """The file of a dataset; `UsageError` that says where to put it if it is not there."""
    found = look_for(folder, file, data)
    if found is None:
        root = data or os.environ.get(VARIABLE)
        raise UsageError(
            f"{task}: there is no file {folder}/{file} in {root}" if root else f"{task}: its data folder is not set",
            remedy=f"put {folder}/{file} into a folder of datasets, then: export {VARIABLE}=FOLDER (or data: FOLDER);"
            f" s3://BUCKET/FOLDER and hf://datasets/OWNER/NAME are folders too",
        )
    return found


def look_for(folder: str, file: str, data: str | os.PathLike[str] | None) -> Path | None:
    """The file of a dataset, or None."""
    named = os.fspath(data) if data is not None else os.environ.get(VARIABLE, "")
    if not named:
        return None
    places = [named] if Path(named).is_dir() else [place.strip() for place in named.split(",")]
    files = [f"{place.rstrip('/')}/{name}" for place in places if place for name in (f"{folder}/{file}", file)]
    return next((found for found in map(file_at, files) if found is not None), None)


def file_at(place: str) -> Path | None:
    """A local file, or a copy of the one at an address; None if there is none."""
    if is_address(place):
        return local_copy(place)
    return Path(place) if Path(place).is_file() else None


def read_rows(path: Path) -> list[Row]:
    """The rows of a .jsonl file or of a .json list, either of them gzipped or not."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot be read: {problem}", place=str(path)) from problem
    if path.name.removesuffix(".gz").endswith(".json"):
        return _checked(path, 1, json.loads(text))
    # Not splitlines(): a row may hold line separators of Unicode, which end no line of JSON.
    return [row for number, line in enumerate(text.split("\n"), 1) if line.strip() for row in _line(path, number, line)]


def _line(path: Path, number: int, line: str) -> list[Row]:
    try:
        return _checked(path, number, [json.loads(line)])
    except ValueError as problem:
        raise UsageError(f"this line is no JSON: {problem}", place=f"{path}:{number}") from problem


def _checked(path: Path, number: int, rows: Any) -> list[Row]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError("a row must be an object with fields", place=f"{path}:{number}")
    return rows


def in_share(key: str, share: float, seed: int = 0) -> bool:
    """Whether a row falls into a share of all rows, by its key alone, so that added rows move no other."""
    digest = blake2b(f"{seed}/{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64
