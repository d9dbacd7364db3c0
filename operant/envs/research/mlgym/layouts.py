"""Local copies of known datasets in other layouts than their tasks read, and the labels that an agent is not shown."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from operant.envs.research.mlgym.made import kept
from operant.errors import UsageError
from operant.install import install_module

TRAIN = "train"
IDX_TEST, IDX_TRAIN = "t10k", TRAIN
TITANIC = "titanic.csv"
LABELS = ("label", "labels", "target", "answer", "Survived")
FASHION = ("T - shirt / top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
TEST_SHARE = 5  # one row of so many, where a copy has no division of its own
NO_TRAIN = (
    "the copy has the 10,000 test pictures only: four fifths of them are to learn from, and the last 2,000 are asked"
)
DIVIDED = "the copy is not divided: every fifth row is asked, and its labels are the true ones"

Files = dict[str, bytes]


def converts(folder: Path) -> bool:
    """Whether a folder holds a copy in a layout that can be turned into the task's."""
    return _has_idx(folder, IDX_TEST) or (folder / TITANIC).is_file()


def converted(folder: Path) -> tuple[Callable[[], Files], str]:
    """What makes the files in the task's layout, and how they differ from the task's own, if they do."""
    if (folder / TITANIC).is_file():
        return lambda: _titanic((folder / TITANIC).read_text(encoding="utf-8")), DIVIDED
    mark = "" if _has_idx(folder, IDX_TRAIN) else NO_TRAIN
    return lambda: kept("idx", _idx_parts(folder), lambda: _from_idx(folder)), mark


def without_labels(files: Files, splits: Sequence[str]) -> Files:
    """Tables of the splits that are asked, with a constant in the place of each label."""
    return {name: _blanked(name, data) if _split_of(name) in splits else data for name, data in files.items()}


def rows_of(files: Files, splits: Sequence[str]) -> int:
    """How many rows the splits that are asked have, as far as that can be read."""
    return sum(_rows(name, data) for name, data in files.items() if _split_of(name) in splits)


def _split_of(name: str) -> str:
    """The split of a table by its name: `test` of data/test-00000-of-00001.parquet; `train` is never asked."""
    path = Path(name)
    split = re.split(r"[-.]", path.name)[0] if path.suffix in (".parquet", ".jsonl", ".csv") else ""
    return "" if split == TRAIN else split


def _rows(name: str, data: bytes) -> int:
    if name.endswith(".parquet"):
        return _parquet().read_metadata(io.BytesIO(data)).num_rows
    lines = sum(1 for line in data.splitlines() if line.strip())
    return lines - 1 if name.endswith(".csv") else lines


def _blanked(name: str, data: bytes) -> bytes:
    if name.endswith(".parquet"):
        return _blanked_parquet(data)
    if name.endswith(".jsonl"):
        rows = [json.loads(line) for line in data.decode("utf-8").split("\n") if line.strip()]
        lines = [json.dumps({key: 0 if key in LABELS else value for key, value in row.items()}) for row in rows]
        return "\n".join([*lines, ""]).encode()
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8"))))
    written = [{key: 0 if key in LABELS else value for key, value in row.items()} for row in rows]
    return _as_csv(list(rows[0]) if rows else [], written)


def _blanked_parquet(data: bytes) -> bytes:
    tables = _parquet()
    import pyarrow  # pyright: ignore[reportMissingImports]

    table = tables.read_table(io.BytesIO(data))
    for place, column in enumerate(table.schema):
        if column.name in LABELS:
            table = table.set_column(place, column, pyarrow.array([0] * table.num_rows, column.type))
    written = io.BytesIO()
    tables.write_table(table, written)
    return written.getvalue()


def _parquet() -> Any:
    try:
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UsageError("this data is in parquet, which needs pyarrow", remedy=install_module("pyarrow")) from None
    return pyarrow.parquet


def _has_idx(folder: Path, split: str) -> bool:
    return all(_idx(folder, split, kind).is_file() for kind in ("images-idx3", "labels-idx1"))


def _idx(folder: Path, split: str, kind: str) -> Path:
    return folder / f"{split}-{kind}-ubyte.gz"


def _idx_parts(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*-ubyte.gz"))}


def _from_idx(folder: Path) -> Files:
    """Pictures and labels as the hub has them: a table of PNGs for each split."""
    test = _idx_rows(folder, IDX_TEST)
    if _has_idx(folder, IDX_TRAIN):
        return {"data/train.parquet": _pictures(_idx_rows(folder, IDX_TRAIN)), "data/test.parquet": _pictures(test)}
    asked = len(test) // TEST_SHARE
    return {"data/train.parquet": _pictures(test[:-asked]), "data/test.parquet": _pictures(test[-asked:])}


def _idx_rows(folder: Path, split: str) -> list[tuple[bytes, int]]:
    pictures = gzip.decompress(_idx(folder, split, "images-idx3").read_bytes())[16:]
    labels = gzip.decompress(_idx(folder, split, "labels-idx1").read_bytes())[8:]
    size = len(pictures) // max(len(labels), 1)
    return [(pictures[place * size : (place + 1) * size], label) for place, label in enumerate(labels)]


def _pictures(rows: Sequence[tuple[bytes, int]]) -> bytes:
    tables = _parquet()
    import pyarrow  # pyright: ignore[reportMissingImports]
    from PIL import Image

    def png(pixels: bytes) -> bytes:
        written = io.BytesIO()
        side = int(len(pixels) ** 0.5)
        Image.frombytes("L", (side, side), pixels).save(written, "png")
        return written.getvalue()

    features = {"image": {"_type": "Image"}, "label": {"names": FASHION, "_type": "ClassLabel"}}
    table = pyarrow.table(
        {"image": [{"bytes": png(pixels), "path": None} for pixels, _ in rows], "label": [label for _, label in rows]},
        schema=pyarrow.schema(
            [("image", pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])), ("label", "int64")],
            metadata={"huggingface": json.dumps({"info": {"features": features}})},
        ),
    )
    written = io.BytesIO()
    tables.write_table(table, written)
    return written.getvalue()


def _titanic(text: str) -> Files:
    """The passengers with a known fate, divided into those to learn from and those that are asked."""
    rows = list(csv.DictReader(io.StringIO(text)))
    columns = list(rows[0])
    asked = rows[::TEST_SHARE]
    learnt = [row for place, row in enumerate(rows) if place % TEST_SHARE]
    return {
        "train.csv": _as_csv(columns, learnt),
        "test.csv": _as_csv([name for name in columns if name != "Survived"], asked),
        "ground_truth.csv": _as_csv(["PassengerId", "Survived"], asked),
    }


def _as_csv(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> bytes:
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue().encode()
