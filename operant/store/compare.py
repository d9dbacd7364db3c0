"""How a run directory differs from its stored copy: behind it, ahead of it, or gone another way."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from operant.errors import UsageError
from operant.run.layout import CHECKPOINTS_FOLDER, REPORT_FOLDER, checkpoint_paths, shown
from operant.store.listing import StoredExperiment
from operant.store.snapshot import unit_paths
from operant.store.transfer import common_hash, read_transfer

NAMED = 5


@dataclass(frozen=True)
class Comparison:
    """`behind`: only the stored copy has changed since the last transfer; `ahead`: only this one; `apart`: both, or
    nobody knows; `removed`: it is no longer here, such as a checkpoint that was pruned."""

    behind: tuple[str, ...]
    ahead: tuple[str, ...]
    apart: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether everything that is stored is here, unchanged."""
        return not (self.behind or self.ahead or self.apart or self.removed)

    @property
    def is_ahead(self) -> bool:
        """Whether the store has nothing new."""
        return bool(self.ahead) and not self.behind and not self.apart

    def refuse_conflicts(self, target: Path, source: str) -> None:
        """`UsageError` naming what differs, where the stored copy would replace something newer or different."""
        differing = [*self.apart, *self.ahead]
        if not differing:
            return
        more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
        raise UsageError(
            f"the run here has content that {source} has not: {', '.join(differing[:NAMED])}{more} differ",
            place=shown(target),
            remedy="--out DIR pulls beside it; --force sets it aside and puts the stored run in its place",
        )


def compare(target: Path, stored: StoredExperiment) -> Comparison:
    """Compare by hashes, file by file. Figures and tables can be drawn again and count for nothing."""
    noted = read_transfer(target)
    behind, ahead, apart, removed = [], [], [], []
    for unit, manifest in stored.units.items():
        for path, entry in manifest.files.items():
            here = _hash(target / unit / path)
            if here == entry.sha256 or (here is not None and path.startswith(f"{REPORT_FOLDER}/")):
                continue
            common, name = common_hash(noted, unit, path), f"{unit}/{path}".lstrip("/")
            if here is None and common == entry.sha256:
                removed.append(name)
            elif here is None or here == common:
                behind.append(name)
            else:
                (ahead if common == entry.sha256 else apart).append(name)
    own = _own_checkpoints(target, stored, noted)
    return Comparison(tuple(behind), (*ahead, *own), tuple(apart), tuple(removed))


def _own_checkpoints(target: Path, stored: StoredExperiment, noted: dict) -> list[str]:
    """The checkpoints that were saved here since the last transfer."""
    own = []
    for unit in unit_paths(target):
        files = stored.units[unit].files if unit in stored.units else {}
        for path in checkpoint_paths(target / unit / CHECKPOINTS_FOLDER):
            name = f"{CHECKPOINTS_FOLDER}/{path.name}/manifest.json"
            if name not in files and common_hash(noted, unit, name) is None:
                own.append(f"{unit}/{CHECKPOINTS_FOLDER}/{path.name}")
    return own


def _hash(file: Path) -> str | None:
    try:
        with open(file, "rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return None
