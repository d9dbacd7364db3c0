"""The source that ran is known by hash, and its text is found again in git, uncommitted changes included."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.run import source
from operant.run.arithmetic import describe_arithmetic


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package in a repository, in the place of Operant's own."""
    folder = tmp_path / "project" / "operant"
    (folder / "engines").mkdir(parents=True)
    (folder / "engines/ppo.py").write_text("clip = 0.2\nepochs = 4\n")
    git(tmp_path, "init", "--quiet", "project")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "first")
    monkeypatch.setattr(source, "PACKAGE", folder)
    monkeypatch.chdir(tmp_path)
    source.source_files.cache_clear()
    yield folder
    source.source_files.cache_clear()


def test_the_same_code_is_recorded_once(package: Path, tmp_path: Path) -> None:
    first = source.record_source(tmp_path)
    assert source.record_source(tmp_path) == first
    assert list(json.loads((tmp_path / first).read_text())) == ["engines/ppo.py"]
    source.source_files.cache_clear()
    (package / "engines/ppo.py").write_text("clip = 0.3\n")
    assert source.record_source(tmp_path) != first


def test_a_recorded_text_is_found_at_its_commit_with_its_patch(package: Path, tmp_path: Path) -> None:
    file, sha = package / "engines/ppo.py", git(package, "rev-parse", "HEAD").strip()
    committed = source.source_files()
    file.write_text("clip = 0.1\nepochs = 4\n")
    patch = tmp_path / "attempt_001.diff"
    patch.write_text(git(package, "diff", "HEAD"))
    source.source_files.cache_clear()
    patched = source.source_files()
    file.write_text("clip = 0.9\n")
    assert source.recorded_text(committed, [sha], None, "engines/ppo.py") == "clip = 0.2\nepochs = 4\n"
    assert source.recorded_text(patched, [sha], patch, "engines/ppo.py") == "clip = 0.1\nepochs = 4\n"
    assert source.recorded_text(patched, [sha], None, "engines/ppo.py") is None, "a text of another hash is never shown"
    assert source.recorded_text(committed, ["f" * 40], None, "engines/ppo.py") is None


def test_arithmetic_names_blas_and_instructions() -> None:
    found = describe_arithmetic()
    assert found["numpy"]["blas"]
    assert isinstance(found["numpy"]["instructions"], list)
