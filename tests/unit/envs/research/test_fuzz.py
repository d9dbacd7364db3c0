"""Whatever a policy says is answered: fuzzed messages on the whole way from a completion to the stored episode.

The messages are played on the stage that training uses, by a generator that writes them in place of a model: they are
read as actions, done in real sandboxes, answered, turned into tokens, judged, stored as episodes and shown again.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("transformers")

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.evaluation.evaluator import format_episode
from operant.engines.language.generation.generator import Completion, Probe, Prompt, Sampling
from operant.engines.language.rollouts.types import Group, as_episodes
from operant.envs.research.workbench import ResearchTask
from operant.report.episodes import Catalogue
from operant.report.transcript import Page, transcript
from operant.run.episode import Turn
from operant.run.metrics import JsonLines
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from tests.unit.envs.research.conftest import GUESS
from tests.unit.envs.research.messages import SETTING, Messages, enormous

TURNS = 60
SECONDS = 1.0  # of one command
OUTPUT = 2_000  # bytes of an output that are shown
SHOWN = OUTPUT + 1_000  # characters: with the words around it
LATE = 45.0  # seconds above the limit of a command that a busy machine may take


@dataclass
class Scribbler:
    """A generator that writes fuzzed messages, the first of each rollout being one that fills the workspace."""

    messages: Messages
    wanted: int
    enormous: float = 0.0
    opening: int = 0
    written: Counter[str] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """One message after each prompt."""
        del sampling
        return [[self._write(prompt)] for prompt in prompts]

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """It has no weights."""

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """It has nothing to compare."""
        del prompts, sampling
        return []

    def close(self) -> None:
        """It holds nothing."""

    def _write(self, prompt: Prompt) -> Completion:
        rng = self.messages.rng
        self.opening = self.opening or len(prompt.tokens)
        if len(prompt.tokens) == self.opening:  # all rollouts begin with the same words
            return _completion(SETTING, cut=False)
        if self.written.total() >= self.wanted:
            return _completion("submit", cut=False)
        kind, text, cut = self.messages.next()
        if rng.random() < self.enormous:
            kind, text = "enormous", enormous(rng)
        self.written[kind] += 1
        self.lengths.append(len(text))
        return _completion(text, cut)


def _completion(text: str, cut: bool) -> Completion:
    tokens = tuple(2 + byte for byte in text[:40].encode(errors="replace"))
    return Completion(tokens, (0.0,) * len(tokens), text, "length" if cut else "stop")


@contextmanager
def fuzzing(scribbler: Scribbler) -> Iterator[TrainingContext]:
    """The parts of a session whose generator is the scribbler."""
    spec = Spec.model_validate(
        {
            "env": {
                "name": GUESS,
                "max_frame": 1000,
                "text": {
                    "arguments": {"turns": TURNS, "output_bytes": OUTPUT},
                    "dialogue": {"turns": TURNS, "concurrency": 2},
                },
            },
            "agent": {
                "algorithm": {"name": "grpo", "group_size": 2, "batch_size": 4},
                "model": {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2, "context": 64}},
            },
        }
    )
    with build_context(spec, Seeds(0)) as context:
        task = context.sampler.parts[0].task
        assert isinstance(task, ResearchTask)
        limits = task.folder.task.limits.model_copy(update={"seconds": SECONDS, "total_seconds": 600})
        task.folder.task = task.folder.task.model_copy(update={"limits": limits})  # pyright: ignore[reportAttributeAccessIssue]
        context.policy.model.config.max_position_embeddings = 10**9  # no rollout ends for want of context
        context.worker.generator = scribbler
        yield context


@dataclass
class Findings:
    """What became of the messages."""

    outcomes: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    longest_seconds: float = 0.0
    longest_observation: int = 0
    tool_errors: float = 0.0

    def take(self, group: Group, path: Path) -> None:
        """Look at every turn of a group as it comes back from the file that training writes."""
        self.errors += group.errors
        rows = JsonLines(path)
        for episode in as_episodes(group, "train", 0, Progress()):
            rows.append(episode.as_dict())
        rows.flush()
        rows.close()
        catalogue = Catalogue.open(path)
        assert catalogue.damaged == 0
        for entry in catalogue.entries:
            episode = catalogue.read(entry)
            for page in (Page(), Page(head=None)):
                "\n".join(transcript(episode, "1", page)).encode()
            format_episode(episode).encode()
            self.tool_errors += episode.parts.get("tool_errors", 0.0)
            for turn in episode.turns:
                self._look(turn)
        path.unlink()

    def _look(self, turn: Turn) -> None:
        if turn.role == "tool":
            self.longest_observation = max(self.longest_observation, len(turn.text))
        if turn.role != "assistant":
            return
        self.longest_seconds = max(self.longest_seconds, turn.seconds or 0.0)
        self.outcomes[f"fault: {turn.fault.split(':')[0][:30]}" if turn.fault else f"answered by {turn.tool}"] += 1


def fuzz(
    count: int, seed: int, place: Path, enormous_share: float = 0.0, slow: float = 0.001
) -> tuple[Scribbler, Findings]:
    """Play `count` messages of a seed, and look at what came of them."""
    scribbler = Scribbler(Messages(seed, slow=slow), count, enormous_share)
    findings = Findings()
    with fuzzing(scribbler) as context:
        number = 0
        problems = context.sampler.parts[0].task.problems("train")
        while scribbler.written.total() < count:
            (group,) = context.worker.rollout([problems[number % len(problems)]], Sampling(2, 1.0, seed=number))
            findings.take(group, place / "episodes.jsonl")
            number += 1
    return scribbler, findings


def held() -> tuple[int, int, int, int]:
    """Kilobytes of memory (less what the allocator merely keeps), open files, threads, children of this process."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return memory, len(os.listdir("/proc/self/fd")), threading.active_count(), len(children)


def check(findings: Findings, caplog: pytest.LogCaptureFixture) -> None:
    assert findings.errors == [], "no rollout was lost"
    assert findings.tool_errors == 0, caplog.text[-3000:]
    assert findings.longest_observation <= SHOWN
    assert findings.longest_seconds <= SECONDS + LATE


def test_fuzzed_messages_are_answered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _, findings = fuzz(240, seed=1, place=tmp_path, slow=0.0)
    check(findings, caplog)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is loaded once is loaded, and the allocator has as much as messages of ten megabytes make it keep."""
    fuzz(2_000, seed=0, place=tmp_path_factory.mktemp("warm"), enormous_share=0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_hundred_thousand_fuzzed_messages_are_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    """Ten thousand of each seed."""
    count, began = 10_000, time.monotonic()
    before = held()
    scribbler, findings = fuzz(count, seed=seed, place=tmp_path, enormous_share=0.0005)
    after = held()
    with capsys.disabled():
        print(f"\n{count} messages in {time.monotonic() - began:.0f} s, by kind: {dict(scribbler.written)}")
        print(f"longest message {max(scribbler.lengths)} characters, longest turn {findings.longest_seconds:.1f} s,")
        print(f"longest observation {findings.longest_observation} characters; kB, files, threads, children:")
        print(f"before {before}, after {after}; {findings.tool_errors:g} tool errors, {len(findings.errors)} lost")
        for outcome, times in findings.outcomes.most_common():
            print(f"{times:>8} {outcome}")
    check(findings, caplog)
    assert after[0] - before[0] < 96_000, "kilobytes: seen 71,000 in the first part, 38,000 in the next"
    assert after[1:] == before[1:], "open files, threads, children"


@pytest.mark.parametrize("seed", range(8))
def test_no_message_of_megabytes_takes_long_to_read(seed: int) -> None:
    from operant.engines.language.policy.tool_calls import message_of
    from operant.envs.research.commands import Misspoken, parse

    for text in (enormous(Random(f"{seed}/{n}")) for n in range(6)):
        began = time.perf_counter()
        with suppress(Misspoken):
            parse(text)
        message_of(text)
        assert time.perf_counter() - began < 20, "linear: well under a second on a free machine"
