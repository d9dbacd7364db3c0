"""Whether a prompt journal balances: every prompt drawn has one outcome, or is open; none is lost, none counts twice.

The journal is held against two other records: the completions that each checkpoint has counted, and the episodes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.run.checkpoint import Checkpoint, list_checkpoints
from operant.run.layout import EPISODES_FILE, PROMPTS_FILE, shown
from operant.run.metrics import read_rows
from operant.run.prompt_journal import OUTCOMES, START
from operant.run.run import Run

MOST_FAULTS = 20


@dataclass(frozen=True)
class Outcome:
    """What became of a prompt: the row that says so, and where in the journal it begins."""

    offset: int
    line: int
    row: dict[str, Any]


@dataclass
class PromptBalance:
    """What a journal says after its last row.

    `outcomes` count; those of updates that were lost with a crash are `undone`. `open` were drawn in the last attempt
    and have no outcome. `regenerated` counts prompts, and `repeated_turns` turns, that were generated once more though
    not for being stale; that costs time, and nothing else. `faults` are what must not be.
    """

    attempts: int = 0
    drawn: set[int] = field(default_factory=set)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    undone: int = 0
    open: set[int] = field(default_factory=set)
    regenerated: int = 0
    repeated_turns: int = 0
    restored: int = 0
    continued: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def balanced(self) -> bool:
        """Whether no prompt is lost, repeated or trained on twice."""
        return not self.faults

    @property
    def counts(self) -> dict[str, int]:
        """The outcomes by name, dropped ones with their reasons."""
        found = Counter(_named(each.row) for each in self.outcomes.values())
        return dict(sorted(found.items()))

    def as_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        numbers = {key: getattr(self, key) for key in ("attempts", "undone", "regenerated", "repeated_turns")}
        numbers |= {"restored": self.restored, "continued": self.continued}
        sizes = {"drawn": len(self.drawn), "open": len(self.open), "outcomes": self.counts}
        return {**sizes, **numbers, "balanced": self.balanced, "faults": self.faults[:MOST_FAULTS]}

    def __str__(self) -> str:
        told = [f"{count:,} {name}" for name, count in self.counts.items()]
        told += [f"{len(self.open):,} open"] if self.open else []
        told += [f"{self.undone:,} outcomes undone by crashes"] if self.undone else []
        left = len(self.drawn) - len(self.outcomes) - len(self.open)
        told += [f"{left:,} left at the end"] if left else []
        attempts = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        text = f"{len(self.drawn):,} prompts in {attempts}: {', '.join(told) or 'no outcome yet'}"
        return text if self.balanced else f"{text}; {len(self.faults)} do not balance, first: {self.faults[0]}"


def check_prompts(run: Run) -> PromptBalance | None:
    """The balance of a run's prompt journal, held against its checkpoints and episodes; None where it has none."""
    journal = run.path / PROMPTS_FILE
    if not journal.is_file():
        return None
    # Before the journal, which may be growing: it then holds all that they count.
    checkpoints = [each for each in list_checkpoints(run.checkpoints) if PROMPTS_FILE in each.offsets]
    audit = _Audit()
    for offset, line, row in _rows(journal):
        audit.read(offset, line, row)
    audit.end()
    for checkpoint in checkpoints:
        audit.compare_frames(checkpoint)
    if checkpoints:
        audit.compare_episodes(run.path / EPISODES_FILE, checkpoints[-1])
    return audit.balance


class _Audit:
    """Reads a journal row by row (final)."""

    def __init__(self) -> None:
        self.balance = PromptBalance()
        self._begun_before: set[int] = set()
        self._first_frames = 0
        self._ready: set[int] = set()
        self._generated: set[int] = set()
        self._turns: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)

    def read(self, offset: int, line: int, row: dict[str, Any]) -> None:
        """Take in a row."""
        event = row["event"]
        if event == START:
            self._start(line, row)
            return
        place = row["prompt"]
        if event == "drawn":
            self._draw(place, line)
        elif event in OUTCOMES:
            self._end(place, Outcome(offset, line, row))
        elif place not in self.balance.open:
            self._fault(line, f"prompt {place} is {event}, but was not drawn in this attempt, or has its outcome")
        else:
            self._note(place, event, row)

    def end(self) -> None:
        """Look for prompts that lie before one with an outcome and are nowhere."""
        found = self.balance
        known = {*self._begun_before, *found.outcomes, *found.open}
        last = max(found.outcomes, default=-1)
        lost = [place for place in range(last) if place not in known]
        self.balance.faults += [f"prompt {place} is lost: later ones have outcomes, it has none" for place in lost]

    def compare_frames(self, checkpoint: Checkpoint) -> None:
        """The completions of all outcomes up to a checkpoint are those that it counted."""
        counted = sum(each.row["completions"] for each in self._until(checkpoint))
        trained = checkpoint.at.frames - self._first_frames
        if counted != trained:
            self.balance.faults.append(
                f"{shown(checkpoint.path)} counts {trained:,} completions, the journal {counted:,} up to there"
            )

    def compare_episodes(self, path: Path, checkpoint: Checkpoint) -> None:
        """The episodes of training up to a checkpoint are the completions of the prompts with outcomes, by problem."""
        data = path.read_bytes()[: checkpoint.offsets[EPISODES_FILE]] if path.is_file() else b""
        rows = [json.loads(line) for line in data.splitlines() if line]
        episodes = Counter(row.get("item") for row in rows if row["split"] == "train")
        prompts: Counter[str | None] = Counter()
        for each in self._until(checkpoint):
            prompts[each.row["problem"]] += each.row["completions"]
        for problem in sorted((episodes - prompts) | (prompts - episodes), key=str)[:MOST_FAULTS]:
            self.balance.faults.append(
                f"{problem} has {episodes[problem]} episodes, and {prompts[problem]} completions in the journal"
            )

    def _until(self, checkpoint: Checkpoint) -> Iterator[Outcome]:
        return (each for each in self.balance.outcomes.values() if each.offset < checkpoint.offsets[PROMPTS_FILE])

    def _start(self, line: int, row: dict[str, Any]) -> None:
        """An attempt begins: outcomes after its checkpoint count no more, and those before it must be as it says."""
        found, had = self.balance, {*range(row["next"])} - {*row["owed"]}
        if not found.attempts:
            self._begun_before, self._first_frames = had, row["frames"]
        kept = {place: each for place, each in found.outcomes.items() if each.offset < row["offset"]}
        found.undone += len(found.outcomes) - len(kept)
        for place in sorted(had - self._begun_before - kept.keys()):
            self._fault(line, f"prompt {place} is lost: the checkpoint counts it as done, and it has no outcome")
        for place in sorted(kept.keys() - had):
            self._fault(line, f"prompt {place} would be repeated: it has an outcome, and the checkpoint owes it")
        found.outcomes, found.attempts = kept, found.attempts + 1
        found.open = set()
        self._ready = set()

    def _draw(self, place: int, line: int) -> None:
        found = self.balance
        if place in found.open or place in found.outcomes or place in self._begun_before:
            self._fault(line, f"prompt {place} is drawn again")
        found.drawn.add(place)
        found.open.add(place)

    def _end(self, place: int, outcome: Outcome) -> None:
        found = self.balance
        if place in found.outcomes:
            before = found.outcomes[place]
            self._fault(outcome.line, f"prompt {place} is {outcome.row['event']} again, first in line {before.line}")
        elif place not in self._ready:
            self._fault(outcome.line, f"prompt {place} is {outcome.row['event']}, but was not graded in this attempt")
        found.outcomes[place] = outcome
        found.open.discard(place)

    def _note(self, place: int, event: str, row: dict[str, Any]) -> None:
        found = self.balance
        if event in ("graded", "restored"):
            self._ready.add(place)
            found.restored += event == "restored"
        elif event == "left":
            found.open.discard(place)
        elif event in ("stale", "redone"):
            self._forget(place)
        elif event == "generated":
            found.regenerated += place in self._generated
            self._generated.add(place)
        elif event == "turn":
            turn = row["rollout"], row["turn"]
            found.repeated_turns += turn in self._turns[place]
            self._turns[place].add(turn)
        found.continued += event == "continued"

    def _forget(self, place: int) -> None:
        """A prompt is generated once more by intent."""
        self._ready.discard(place)
        self._generated.discard(place)
        self._turns.pop(place, None)

    def _fault(self, line: int, text: str) -> None:
        self.balance.faults.append(f"{PROMPTS_FILE}:{line}: {text}")


def _rows(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The whole rows of a journal, with the byte where each begins and its line."""
    rows, offset = read_rows(path), 0
    lines = path.read_bytes().split(b"\n")
    for number, (row, line) in enumerate(zip(rows, lines, strict=False), start=1):
        yield offset, number, row
        offset += len(line) + 1


def _named(row: dict[str, Any]) -> str:
    if row["event"] != "dropped":
        return str(row["event"])
    return f"dropped ({str(row['reason']).partition(':')[0]})"
