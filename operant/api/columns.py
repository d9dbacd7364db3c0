"""Rows as columns: a mapping from names to numpy arrays, and a data frame where a library for those is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from operant.errors import UsageError
from operant.spec.reading.diagnostics import did_you_mean

AXES = ("frames", "updates", "episodes", "seconds")
FRAMES = "frames"


class Columns(Mapping[str, np.ndarray]):
    """Columns of equal length, by name; a value that a row lacks is NaN."""

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self._columns = dict(columns)

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], names: Sequence[str], place: str) -> Columns:
        """`frames` and the named columns, in the rows that have one of them; without names every number."""
        known = list(dict.fromkeys(key for row in rows for key, value in row.items() if _is_number(value)))
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known) or (f"there are {', '.join(known[:12])}" if known else "no rows yet")
                raise UsageError(
                    f"no row has the metric {name!r}; {hint}", place=place, remedy="metrics() has them all"
                )
        chosen = list(dict.fromkeys([FRAMES, *names])) if names else known
        kept = [row for row in rows if not names or any(_is_number(row.get(name)) for name in names)]
        return cls({name: np.array([_number(row.get(name)) for row in kept], np.float64) for name in chosen})

    @classmethod
    def below_each_other(cls, label: str, parts: Sequence[tuple[int, Columns]]) -> Columns:
        """The parts one below the other, with a column that says which part a row is of."""
        names = list(dict.fromkeys(name for _, part in parts for name in part))
        lengths = [part.height for _, part in parts]
        labels = np.repeat([value for value, _ in parts], lengths)
        missing = [{name: part.get(name, np.full(part.height, np.nan)) for name in names} for _, part in parts]
        return cls({label: labels, **{name: np.concatenate([each[name] for each in missing]) for name in names}})

    @property
    def height(self) -> int:
        """How many rows there are."""
        return len(next(iter(self._columns.values()), ()))

    def frame(self) -> Any:
        """A DataFrame of pandas, or of polars where only that is installed."""
        if find_spec("pandas") is not None:
            import pandas

            return pandas.DataFrame(self._columns)
        if find_spec("polars") is not None:
            import polars  # pyright: ignore[reportMissingImports]

            return polars.DataFrame(self._columns)
        raise UsageError("neither pandas nor polars is installed", remedy="pip install pandas")

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Columns({self.height} rows: {', '.join(self._columns)})"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: object) -> float:
    return float(value) if _is_number(value) else float("nan")  # pyright: ignore[reportArgumentType]
