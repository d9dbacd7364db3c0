"""The secret behind hidden seeds: made once, kept to its owner, and told by its fingerprint alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from operant.envs.sandbox import bubblewrap, open_sandbox
from operant.envs.secret import VARIABLE, Secret, load_secret, secret_file
from operant.errors import UsageError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("home")
def test_it_is_made_at_first_use_for_its_owner_alone_and_stays() -> None:
    first = load_secret()
    assert load_secret() == first
    assert secret_file().stat().st_mode & 0o777 == 0o600
    assert [each.name for each in secret_file().parent.iterdir()] == ["grading"]


@pytest.mark.usefixtures("home")
def test_many_who_make_it_at_once_get_the_same() -> None:
    line = [sys.executable, "-c", "from operant.envs.secret import load_secret as s; print(s().fingerprint)"]
    makers = [subprocess.Popen(line, stdout=subprocess.PIPE) for _ in range(4)]
    assert len({maker.communicate()[0] for maker in makers}) == 1


def test_seeds_follow_from_the_secret_and_differ_by_purpose_and_parts() -> None:
    one, other = Secret(b"1" * 32), Secret(b"2" * 32)
    seeds = {
        key.seed(purpose, "blotto", k)
        for key in (one, other)
        for purpose in ("hidden", "validation")
        for k in range(50)
    }
    assert len(seeds) == 200
    assert one.seed("hidden", "a", 1) == Secret(b"1" * 32).seed("hidden", "a", 1) < 2**63
    assert one.seed("a", "bc") != one.seed("ab", "c")
    assert one.fingerprint != other.fingerprint


def test_it_never_shows_itself() -> None:
    assert "sesame" not in repr(Secret(b"open sesame" * 3))


def test_another_file_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "copied"
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(UsageError, match="names no file"):
        load_secret()
    file.write_text("0123456789abcdef0123456789abcdef")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="others may read"):
        load_secret()
    file.chmod(0o600)
    assert load_secret() == load_secret()
    file.write_text("short")
    with pytest.raises(UsageError, match="16 bytes at least"):
        load_secret()


@pytest.mark.skipif(bool(bubblewrap.trouble()), reason=f"no sandbox: {bubblewrap.trouble()}")
def test_it_cannot_be_read_in_a_sandbox_even_where_its_place_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if os.stat(folder).st_uid == os.getuid() and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef0123456789abcdef")
    file.chmod(0o604)
    monkeypatch.setenv(VARIABLE, str(file))
    with open_sandbox("bubblewrap", readable=[str(tmp_path)]) as sandbox:
        assert sandbox.run(["cat", str(file)], seconds=5).out == b""
