"""Rates from a session whose trace is written here by hand, so that they are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from operant.errors import UsageError
from operant.planning.telemetry import read_rates

LANES = ("trainer", "generator", "verifiers", "prompts", "generator 0")
LENGTH, GROUP = 10, 4


class Session:
    """A session directory, to which rounds are added one after the other."""

    def __init__(self, path: Path) -> None:
        self.path, self.now, self.place = path, 100.0, 0
        self.events = [self.row("M", "thread_name", lane, args={"name": lane}) for lane in LANES]
        self.lengths: list[int] = []

    def row(self, phase: str, name: str, lane: str, **rest: Any) -> dict[str, Any]:
        return {"ph": phase, "name": name, "pid": 1, "tid": LANES.index(lane) + 1, "ts": self.now * 1e6, **rest}

    def span(self, name: str, lane: str, seconds: float, **facts: Any) -> None:
        self.events.append(self.row("X", name, lane, dur=seconds * 1e6, args=facts))
        self.now += seconds

    def round(self, prompts: int, generate: float, verify: float, train: float, sync: float, rest: float) -> None:
        """A synchronous round."""
        tokens, places = LENGTH * GROUP, range(self.place, self.place + prompts)
        self.span("generate", "generator", generate, prompts=prompts, completions=GROUP)
        for place in places:
            facts = {"step": "generated", "tokens": tokens, "by": "generator"}
            self.events.append(self.row("n", "generated", "prompts", id=place, args=facts))
        self.span("verify", "verifiers", verify, answers=prompts * GROUP)
        self.span("train", "trainer", train)
        self.events += [self.row("e", "prompt", "prompts", id=place, args={"step": "learnt"}) for place in places]
        self.span("sync", "trainer", sync)
        self.now += rest
        self.place += prompts
        self.lengths += [LENGTH] * prompts * GROUP

    def write(self) -> Path:
        self.path.mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + ",\n" for row in self.events)
        (self.path / "trace.json").write_text(f'[\n{lines}{{"ph":"X","na')
        episodes = [{"split": "train", "length": length} for length in self.lengths] + [{"split": "eval", "length": 99}]
        (self.path / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in episodes))
        (self.path / "metrics.jsonl").write_text('{"rollout/zero_variance":0.25}\n{"eval/score":1}\n')
        weights = self.path / "checkpoints" / "000000000000"
        weights.mkdir(parents=True, exist_ok=True)
        (weights / "model.safetensors").write_bytes(bytes(1234))
        (weights / "learner.safetensors").write_bytes(bytes(9999))
        (self.path / "checkpoints" / "latest").symlink_to(weights.name)
        return self.path


def test_a_synchronous_run_tells_its_rates(tmp_path: Path) -> None:
    session = Session(tmp_path / "session_0")
    session.span("generate", "generator", 50.0, prompts=9, completions=1)  # evaluation, which starts processes too
    for _ in range(5):
        session.round(prompts=2, generate=4.0, verify=0.5, train=1.5, sync=0.25, rest=0.125)
    rates, remarks = read_rates([session.write()], slots=64, generators=1, verifiers=2)
    assert rates.token_seconds == pytest.approx(4.0 / 80)
    assert rates.step_seconds == 0
    assert "8 completions" in remarks[0]
    assert rates.verify_seconds == pytest.approx(0.5 * 2 / 8)
    assert rates.train_token_seconds == pytest.approx(1.5 / 80)
    assert (rates.publish_seconds, rates.load_seconds) == pytest.approx((0.0, 0.25))
    assert rates.round_seconds == pytest.approx(0.125)
    assert rates.lengths == (LENGTH,) * 40
    assert rates.weight_bytes == 1234
    assert rates.signal == pytest.approx(0.75)


def test_rounds_of_two_sizes_tell_what_a_step_takes(tmp_path: Path) -> None:
    sessions = []
    for prompts in (1, 8):
        session = Session(tmp_path / f"session_{prompts}")
        for _ in range(4):
            tokens = prompts * GROUP * LENGTH
            session.round(prompts, tokens * 0.01 + LENGTH * 0.2, 0.1, 1.0, 0.1, 0.0)
        sessions.append(session.write())
    rates, remarks = read_rates(sessions, slots=64, generators=1, verifiers=1)
    assert (rates.token_seconds, rates.step_seconds) == pytest.approx((0.01, 0.2))
    assert remarks == []


def test_generators_that_shared_a_call_wrote_a_share_each(tmp_path: Path) -> None:
    session = Session(tmp_path / "session_0")
    for _ in range(4):
        session.round(prompts=8, generate=4.0, verify=0.5, train=1.5, sync=0.25, rest=0.0)
    rates, _ = read_rates([session.write()], slots=64, generators=4, verifiers=1)
    assert rates.token_seconds == pytest.approx(4.0 / (2 * GROUP * LENGTH))


def test_hand_over_to_workers_of_their_own_is_told_apart(tmp_path: Path) -> None:
    session = Session(tmp_path / "session_0")
    for _ in range(4):
        session.round(prompts=2, generate=1.0, verify=0.5, train=1.5, sync=0.25, rest=0.0)
        session.span("sync", "generator 0", 0.75)
    rates, _ = read_rates([session.write()], slots=64, generators=1, verifiers=1)
    assert (rates.publish_seconds, rates.load_seconds) == pytest.approx((0.25, 0.75))


def test_a_run_without_a_round_has_no_rates(tmp_path: Path) -> None:
    session = Session(tmp_path / "session_0")
    session.span("generate", "generator", 5.0, prompts=9, completions=1)
    with pytest.raises(UsageError, match="no rates yet"):
        read_rates([session.write()], slots=64, generators=1, verifiers=1)


def test_tasks_of_many_turns_are_refused(tmp_path: Path) -> None:
    session = Session(tmp_path / "session_0")
    session.round(prompts=2, generate=1.0, verify=0.5, train=1.5, sync=0.25, rest=0.0)
    session.span("generate", "generator", 2.0, turns=8)
    session.write()
    with pytest.raises(UsageError, match="many turns"):
        read_rates([session.path], slots=64, generators=1, verifiers=1)
