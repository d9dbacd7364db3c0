"""Every check of the contract passes a run that keeps it, and fails one that breaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from operant.contract.checks import CHECKS, Broken, Subject, episodes, evaluation, kill_and_resume, rows, same_seed
from operant.contract.processes import finish
from operant.contract.runner import run_contract, session_maker
from operant.contract.targets import contract_spec
from operant.run.records import Records
from tests.warm import run_warm

PARTS = "tests.unit.contract.parts"
SHORT = ["env.max_frame=1024", "env.vectorization=serial"]


@pytest.fixture(autouse=True, scope="module")
def _warm_sessions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("operant.contract.processes._run", run_warm)
        yield


def subject(folder: Path, part: str) -> Subject:
    """A part trained undisturbed."""
    make = session_maker(contract_spec(f"{PARTS}:{part}", None, SHORT), folder)
    run = make("whole", {})
    finish(run)
    return Subject(run, Records.of(run), make)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return subject(tmp_path_factory.mktemp("sound"), "Corridor")


def test_a_sound_part_keeps_every_promise(tmp_path: Path):
    findings = list(run_contract(contract_spec(f"{PARTS}:Corridor", None, SHORT), tmp_path))
    assert [finding.promise for finding in findings] == ["trains", *CHECKS]
    assert all(finding.kept for finding in findings), [str(finding) for finding in findings]
    assert re.fullmatch(r"ok  same seed, same bytes \(2 runs, \d checkpoints\)", str(findings[1]))
    assert "exact; killed at row" in str(findings[2])


@pytest.mark.slow
def test_an_environment_that_draws_from_the_process_is_not_the_same_again(tmp_path: Path):
    with pytest.raises(Broken, match=r"metrics\.jsonl line 1: .*train/return: .* and "):
        same_seed(subject(tmp_path, "Unseeded"))


@pytest.mark.slow
def test_an_environment_with_a_memory_of_its_own_does_not_resume_exactly(tmp_path: Path):
    with pytest.raises(Broken, match=r"metrics\.jsonl line \d+: "):
        kill_and_resume(subject(tmp_path, "Remembering"))


@pytest.mark.slow
def test_an_environment_that_shares_state_is_disturbed_by_evaluation(tmp_path: Path):
    with pytest.raises(Broken, match="the same checkpoint and seeds scored"):
        evaluation(subject(tmp_path, "Shared"))


def test_a_run_that_fails_says_why_and_is_not_tried_further(tmp_path: Path):
    spec = contract_spec(f"{PARTS}:Infinite", None, SHORT)
    broken = spec.model_copy(update={"env": spec.env.model_copy(update={"kwargs": {"width": 3}})})
    (finding,) = run_contract(broken, tmp_path)
    assert not finding.kept
    assert str(finding).startswith("FAILED  trains: ")
    assert "width" in str(finding)


def changed(sound: Subject, file: str, change: Callable[[list[dict[str, Any]]], None]) -> Subject:
    """The sound run with other rows in one of its logs."""
    table = [dict(row) for row in getattr(sound.records, file)]
    change(table)
    return replace(sound, records=replace(sound.records, **{file: table}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table[1].pop("updates"), "metrics.jsonl: line 2 has no updates"),
        (lambda table: table[2].update(frames=1), "metrics.jsonl: frames do not grow"),
        (lambda table: table.pop(), "metrics.jsonl: 0 rows have final/score, not 1"),
        (lambda table: table.clear(), "metrics.jsonl: it ends at frame 0 of 1024"),
        (lambda table: table[3].update({"loss/policy": None}), "loss/policy is not a finite number, and no alert"),
    ],
)
def test_rows_that_lack_something(sound: Subject, change: Callable[..., None], words: str):
    assert rows(sound).endswith(" rows")
    with pytest.raises(Broken, match=words):
        rows(changed(sound, "metrics", change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table[1].update(seed=None), "episodes.jsonl: line 2 has no seed"),
        (lambda table: table[0].update(score=None), "episodes.jsonl: line 1 has no score"),
        (lambda table: table[0].update(split="test"), "episodes.jsonl: there is no split 'test'"),
        (lambda table: table.pop(), "episodes.jsonl: 2 final episodes instead of 3"),
    ],
)
def test_episodes_that_lack_something(sound: Subject, change: Callable[..., None], words: str):
    assert episodes(sound).endswith(" 3 final")
    with pytest.raises(Broken, match=words):
        episodes(changed(sound, "episodes", change))


def test_a_number_that_is_not_finite_is_in_order_where_an_alert_said_so(sound: Subject, tmp_path: Path):
    (tmp_path / "events.jsonl").write_text(json.dumps({"kind": "not_finite", "message": "loss/policy is not"}) + "\n")
    told = changed(sound, "metrics", lambda table: table[3].update({"loss/policy": None}))
    assert rows(replace(told, run=replace(sound.run, path=tmp_path))).endswith("with alerts for loss/policy")
