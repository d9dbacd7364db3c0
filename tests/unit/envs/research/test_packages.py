"""Packages that a sandbox may use are found by the records of what installed them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from importlib import invalidate_caches
from pathlib import Path

import pytest

from operant.envs.research import packages as room
from operant.envs.research.packages import packages
from operant.envs.research.workbench import ResearchTask
from operant.envs.sandbox import open_sandbox, require_sandbox
from operant.errors import UsageError

RECORDS = {
    "odd_wheel-1.0": ["oddly/__init__.py", "some.where.libs/part.so", "odd_wheel-1.0.dist-info/METADATA", "../bin/odd"],
    "needed_by_odd-2.0": ["needed.py", "needed_by_odd-2.0.dist-info/METADATA"],
}
FILES = {
    "oddly/__init__.py": "import needed\nfrom pathlib import Path\n"
    "there = (Path(__file__).parents[1] / 'some.where.libs/part.so').read_text()\n",
    "some.where.libs/part.so": "a library",
    "needed.py": "from importlib.metadata import version\nversion('needed-by-odd')\n",
    "unasked.py": "",
    "odd_wheel-1.0.dist-info/METADATA": "Name: odd-wheel\nVersion: 1.0\nRequires-Dist: needed-by-odd\n"
    "Requires-Dist: not-there; extra == 'more'\nRequires-Dist: neither\n",
    "needed_by_odd-2.0.dist-info/METADATA": "Name: needed-by-odd\nVersion: 2.0\n",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    site = tmp_path / "site"
    records = {f"{name}.dist-info/RECORD": "".join(f"{row},,\n" for row in rows) for name, rows in RECORDS.items()}
    for name, text in {**FILES, **records}.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and len(folder.parts) > 2:
            folder.chmod(0o755)
    monkeypatch.syspath_prepend(str(site))
    for cached in (room.packages, room._owners):
        cached.cache_clear()
    invalidate_caches()
    yield site
    for cached in (room.packages, room._owners):
        cached.cache_clear()


def test_libraries_beside_a_package_and_what_it_needs_are_shown_whatever_they_are_called(site: Path) -> None:
    shown = packages(("oddly",))
    names = {str(Path(place).relative_to(site)) for place in shown.folders}
    infos = {"odd_wheel-1.0.dist-info", "needed_by_odd-2.0.dist-info"}
    assert names == {"oddly", "some.where.libs", "needed.py", *infos}
    with open_sandbox("auto", readable=shown.folders) as sandbox:
        line = ["python3", "-B", "-c", "import oddly; print(oddly.there)"]
        ran = sandbox.run(line, seconds=20, environment=shown.environment)
    assert (ran.code, ran.out) == (0, b"a library\n"), ran.err.decode()


def test_a_package_without_a_record_is_shown_and_one_that_is_absent_is_named(site: Path) -> None:
    assert packages(("unasked",)).folders == (str(site / "unasked.py"),)
    with pytest.raises(UsageError, match="no_such_package, which is not installed"):
        packages(("no_such_package",))


CLOSED = 0o700 if os.geteuid() == 0 else 0  # to the user that a sandbox has


@pytest.mark.parametrize("closed", [".", "oddly"])
def test_a_folder_that_the_sandbox_may_not_enter_is_an_error_of_the_set_up(site: Path, closed: str) -> None:
    shown = packages(("oddly",))
    folder = (site / closed).resolve()
    folder.chmod(CLOSED)
    try:
        for refuse in (require_sandbox, partial(open_sandbox, limits=None, files={})):
            with pytest.raises(UsageError, match=r"the sandbox cannot read .*/oddly: its user may not enter ") as error:
                refuse("auto", readable=shown.folders)
            assert error.value.cause.endswith(f"enter {folder}")
            assert error.value.remedy is not None
            assert error.value.remedy.startswith(f"chmod {'o+rX' if closed == 'oddly' else 'o+x'} {folder},")
    finally:
        folder.chmod(0o755)
    require_sandbox("auto", shown.folders)


def test_a_task_whose_packages_cannot_be_shown_is_refused_before_any_work(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ResearchTask("blotto")
    monkeypatch.setattr(type(task.folder), "packages", packages(("oddly",)))
    task.prepare()
    site.chmod(CLOSED)
    try:
        for start in (task.prepare, lambda: task.begin(task.problems("eval")[0], 0)):
            with pytest.raises(UsageError, match="the sandbox cannot read"):
                start()
    finally:
        site.chmod(0o755)
