from __future__ import annotations

from operant.run.layout import METRICS_FILE
from operant.trackers.position import MAX_MARKS, SPACING, Position, PositionFile
from operant.trackers.reader import batches, last_row
from tests.unit.trackers.conftest import MakeRun


def rows(count: int, word: str = "a") -> list[str]:
    return [f'{{"frames":{100 * k},"w":"{word}"}}\n' for k in range(1, count + 1)]


def test_marks_find_the_last_row_that_is_still_there(make_run: MakeRun) -> None:
    run = make_run()
    file = run.path / METRICS_FILE
    old = rows(500)
    file.write_text("".join(old))
    position = Position()
    for _, at in batches(run.path, Position(), "running", last_row(run.path, Position())):
        position = at
    assert position.rows == 500
    assert len(position.marks) <= MAX_MARKS
    PositionFile(run.path, "x").write(position)
    assert PositionFile(run.path, "x").read() == position
    assert position.rewound(run.path) is None
    for kept in (499, 470, 300, 17, 0):
        # Cut back, and grown again past where it was.
        file.write_text("".join([*old[:kept], *rows(600, "b")[kept:]]))
        back = position.rewound(run.path)
        assert back is not None
        assert back.step <= 100 * kept
        assert back.metrics == sum(map(len, old[: max(back.step, 0) // 100]))
        assert kept - max(back.step, 0) // 100 <= max(1, (500 - kept) / SPACING + 1)
