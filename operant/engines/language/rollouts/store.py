"""Rollouts on disk until a checkpoint has learnt from them, so that a killed run does not pay for them again.

`rollouts/12.json` is the graded group of the prompt at place 12; `rollouts/12-3.json` its rollout 3, of many turns, as
it was after its last finished turn. Files appear whole or not at all; one that cannot be read is as if it were absent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from operant.engines.language.rollouts.serialization import group_of, group_row
from operant.engines.language.rollouts.types import Group
from operant.envs.text.task import Problem
from operant.run.disk import disk_guard
from operant.run.layout import LEFTOVER_PREFIX


class RolloutStore:
    """The rollouts of a session that no checkpoint covers (final). Any thread may use it, each place by one at a time.

    What is kept also says `after`: all prompts before that place had been trained on when its weights were published.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, group: Group, after: int) -> None:
        """Keep a graded group, in place of its rollouts; of which some may have been begun by later weights."""
        assert group.place is not None
        rollouts = self._files(f"{group.place}-*.json")
        begun = (row["after"] for path in rollouts if (row := self._read(path.name)) is not None)
        self._write(f"{group.place}.json", {"after": max([after, *begun]), **group_row(group)})
        self._remove(rollouts)

    def read(self, place: int, problem: Problem) -> Group | None:
        """The group of a prompt, if there is one."""
        row = self._read(f"{place}.json")
        return None if row is None else group_of(row, problem, place)

    def write_rollout(self, place: int, index: int, row: dict[str, Any]) -> None:
        """Keep a rollout of many turns."""
        self._write(f"{place}-{index}.json", row)

    def read_rollout(self, place: int, index: int) -> dict[str, Any] | None:
        """What is kept of a rollout."""
        return self._read(f"{place}-{index}.json")

    def discard(self, place: int) -> None:
        """Forget a prompt's rollouts, which are made anew."""
        self._remove([self.folder / f"{place}.json", *self._files(f"{place}-*.json")])

    def retain(self, wanted: Callable[[int], bool]) -> None:
        """Forget the rollouts of all prompts that are not wanted."""
        self._remove(path for path in self._files() if not wanted(_place(path)))

    def check_lineage(self, owed: Sequence[int], position: int) -> None:
        """Forget what was written by weights that a resumed run will not come by again.

        It trains on the prompts `owed`, and then on those from `position` on. Weights come again if all prompts that
        made them have their groups here.
        """
        first_lacking = next(place for place in chain(owed, count(position)) if self._read(f"{place}.json") is None)
        for path in self._files():
            row = self._read(path.name)
            if row is None or row["after"] > first_lacking:
                path.unlink()

    def _files(self, pattern: str = "*.json") -> list[Path]:
        return [path for path in self.folder.glob(pattern) if path.stem.replace("-", "").isdigit()]

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            row = json.loads((self.folder / name).read_bytes())
        except (OSError, ValueError):
            return None
        return row if isinstance(row, dict) else None

    def _write(self, name: str, row: dict[str, Any]) -> None:
        target = self.folder / name
        with disk_guard(target, self.folder.parent):
            self.folder.mkdir(exist_ok=True)
            temporary = self.folder / f"{LEFTOVER_PREFIX}{name}"
            temporary.write_text(json.dumps(row, separators=(",", ":")))
            os.replace(temporary, target)

    def _remove(self, paths: Iterable[Path]) -> None:
        for path in list(paths):
            path.unlink(missing_ok=True)


def _place(path: Path) -> int:
    return int(path.stem.partition("-")[0])
