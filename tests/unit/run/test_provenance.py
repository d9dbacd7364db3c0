from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from operant.run import provenance
from operant.run.provenance import capture

TOKEN = "hf_thisIsASecret0123456789"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, as the working directory."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "agent.py").write_text("gamma = 0.99\n")
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", ".")
    git(root, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "first")
    monkeypatch.chdir(root)
    return root


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout


def captured(session: Path, command: list[str] | None = None) -> dict:
    file = capture(session, 1, command or ["operant", "train", "ppo_cartpole"], {"session": 3})
    assert file == session / "provenance" / "attempt_001.json"
    return json.loads(file.read_text())


def test_what_ran_is_recorded(repository: Path, tmp_path: Path):
    document = captured(tmp_path / "s")
    assert document["command"] == ["operant", "train", "ppo_cartpole"]
    assert document["seeds"] == {"session": 3}
    assert document["git"][0]["sha"] == git(repository, "rev-parse", "HEAD").strip()
    assert document["git"][0]["branch"] == "main"
    assert document["git"][0]["dirty"] is False
    assert document["packages"]["numpy"]
    assert document["hardware"]["cores"] >= 1
    assert document["hardware"]["memory_bytes"] > 2**20


def test_uncommitted_changes_are_kept_as_a_diff(repository: Path, tmp_path: Path):
    assert not any("-gamma" in text for text in diffs(tmp_path / "clean"))
    (repository / "agent.py").write_text("gamma = 0.9\n")
    (repository / "new.py").write_text("")
    document = captured(tmp_path / "s")
    assert document["git"][0]["dirty"] is True
    assert document["git"][0]["untracked"] == ["new.py"]
    assert document["diff"] == "attempt_001.diff"
    text = (tmp_path / "s" / "provenance" / "attempt_001.diff").read_text()
    assert "-gamma = 0.99\n+gamma = 0.9\n" in text


def diffs(session: Path) -> list[str]:
    captured(session)
    return [file.read_text() for file in (session / "provenance").glob("*.diff")]


def test_a_folder_without_git_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert captured(tmp_path / "s")["git"] == []


def test_the_lock_file_names_the_packages(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    without = captured(tmp_path / "a")["lock"]
    assert without["of"] == "installed versions"
    assert captured(tmp_path / "b")["lock"] == without
    (repository / "uv.lock").write_text("version = 1\n")
    (repository / "deep").mkdir()
    monkeypatch.chdir(repository / "deep")
    lock = captured(tmp_path / "c")["lock"]
    assert lock == {"of": "uv.lock", "sha256": hashlib.sha256(b"version = 1\n").hexdigest()}


def test_a_secret_of_the_environment_appears_nowhere(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HOME_OF_TOKEN", f"https://user:{TOKEN}@example.org/x")
    monkeypatch.setenv("OPERANT_API_KEY", TOKEN)
    monkeypatch.setenv("PYTHON_NOTE", f"beware of {TOKEN}")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    (repository / "agent.py").write_text(f"token = '{TOKEN}'\n")
    document = captured(tmp_path / "s", ["operant", "push", TOKEN, f"--header=Bearer {TOKEN}"])
    written = [file.read_text() for file in (tmp_path / "s").rglob("*") if file.is_file()]
    assert len(written) == 3
    assert not any(TOKEN in text for text in written)
    assert document["environment"]["HF_TOKEN"] == "<redacted>"
    assert document["environment"]["OMP_NUM_THREADS"] == "3"
    assert document["command"][:2] == ["operant", "push"]


def test_a_command_that_hangs_or_fails_is_skipped():
    assert provenance._run(["sleep", "5"], 0.05) is None
    assert provenance._run(["false"], 5) is None
    assert provenance._run(["no-such-program"], 5) is None
