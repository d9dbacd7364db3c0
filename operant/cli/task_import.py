"""`operant tasks import`: the task files of another lab's checkout, which of them run here, and what they score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE, EXIT_FAILED

if TYPE_CHECKING:
    from operant.envs.research.mlgym.survey import Row


def import_tasks(place: str, data: str | None, seconds: float | None, as_json: bool) -> int:
    """Import every task file of a checkout and print what became of each; it fails where one cannot be imported.

    With `seconds` their baselines are run, each of their programs for so long at most.
    """
    from operant.envs.research.mlgym.survey import surveyed, task_files

    rows = list(surveyed(task_files(place), data, seconds, aside))
    code = EXIT_DONE if all(row.imported for row in rows) else EXIT_FAILED
    if as_json:
        document({"files": [row.as_data() for row in rows], "counts": _counts(rows), "exit": code})
        return code
    _print(rows)
    say("", ", ".join(f"{name} {count}" for name, count in _counts(rows).items()))
    return code


def _counts(rows: list[Row]) -> dict[str, int]:
    return {
        "files": len(rows),
        "imported": sum(row.imported for row in rows),
        "data and packages there": sum(row.runs for row in rows),
        "baseline scored": sum(row.baseline is not None for row in rows),
    }


def _print(rows: list[Row]) -> None:
    from operant.report.formatting import columns

    head = ["file", "form", "metric", "stated", "baseline here", "took", "runs", "data"]
    table = [
        [
            row.file,
            row.form or "none",
            row.metric,
            _number(row.stated),
            _number(row.baseline),
            "" if row.took is None else f"{row.took:.0f} s",
            "yes" if row.runs else "no",
            row.data if row.runs else "",
        ]
        for row in rows
    ]
    say(*(line.rstrip() for line in columns([head, *table])))
    for row in rows:
        for what, said in (("lacks", row.lacks), ("note", row.note)):
            if said:
                say(f"  {row.file} {what if row.imported else 'cannot be imported'}: {' '.join(said.split())}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
