from __future__ import annotations

from pathlib import Path

import pytest

from operant.run.redaction import harmless_environment, redact, redact_command


def test_only_harmless_values_are_kept():
    kept = harmless_environment({"HOME": "/home/me", "CUDA_VISIBLE_DEVICES": "0", "SLURM_JWT": "abc", "LANG": "C"})
    assert kept == {"CUDA_VISIBLE_DEVICES": "0", "HOME": "<redacted>", "LANG": "C", "SLURM_JWT": "<redacted>"}


def test_secret_options_of_a_command_are_blotted_out():
    words = ["operant", "push", "--token", "abc123", "--api-key=def456", "-s", "agent.tokens=5", "https://me:pw@host/x"]
    assert redact_command(words) == [
        *("operant", "push", "--token", "<redacted>", "--api-key=<redacted>", "-s", "agent.tokens=5"),
        "https://<redacted>@host/x",
    ]


def test_short_values_and_paths_are_not_taken_for_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_KEY", "1")
    monkeypatch.setenv("CREDENTIALS_FILE", str(tmp_path))
    text = f"frame 1 of 100 in {tmp_path}"
    assert redact(text) == text
