"""Where control groups can be made, read from what a kernel says of itself; and that none is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.envs.sandbox import Limits, cgroup
from operant.envs.sandbox.cgroup import Parent, settings

SECOND = "30 20 0:26 / {root} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
FIRST = "31 20 0:27 / {root} rw,nosuid - cgroup cgroup rw,memory\n"


def folder(path: Path, given: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.subtree_control").write_text(given)
    (path / cgroup.PROCESSES).write_text("")
    return path


def test_in_version_2_the_nearest_folder_that_counts_the_memory_of_its_children_is_taken(tmp_path: Path) -> None:
    folder(tmp_path, "memory pids cpu")
    user = folder(tmp_path / "user", "memory pids")
    folder(tmp_path / "user" / "shell", "")
    found = list(cgroup._usable(SECOND.format(root=tmp_path), "0::/user/shell\n"))
    assert found == [Parent(user, 2, ("memory", "pids"))]


def test_a_tree_that_counts_no_memory_is_not_taken(tmp_path: Path) -> None:
    folder(tmp_path, "hugetlb")
    assert list(cgroup._usable(SECOND.format(root=tmp_path), "0::/\n")) == []


def test_in_version_1_it_is_our_own_group(tmp_path: Path) -> None:
    own = folder(tmp_path / "box", "")
    assert list(cgroup._usable(FIRST.format(root=tmp_path), "4:memory:/box\n")) == [Parent(own, 1, ("memory",))]


def test_every_version_is_told_the_same_limit() -> None:
    limits = Limits(memory=1 << 20)
    for version in (1, 2):
        written = {
            file: value for file, value, needed in settings(Parent(Path("/"), version, ("memory",)), limits) if needed
        }
        assert list(written.values()) == [1 << 20]


@pytest.mark.skipif(not cgroup.parents(), reason="no control groups can be made here")
def test_groups_whose_maker_died_are_removed_and_others_are_not() -> None:
    parent = cgroup.parents()[0].path
    left = parent / f"{cgroup.PREFIX}left"
    left.mkdir()
    held = cgroup.make_group(Limits())
    assert held is not None
    try:
        cgroup.sweep(parent)
        assert not left.exists()
        assert all(each.is_dir() for each in held._folders)
    finally:
        held.close()
