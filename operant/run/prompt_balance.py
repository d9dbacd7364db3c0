"""Whether a prompt journal balances: every prompt drawn has one outcome, or is open; none is lost, none counts twice.

The journal is held against two other records: the completions that each checkpoint has counted, and the episodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.run.checkpoint import Checkpoint, list_checkpoints
from operant.run.layout import EPISODES_FILE, PROMPTS_FILE, shown
from operant.run.metrics import parse_row
from operant.run.prompt_journal import FIELDS, OUTCOMES, START
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
        left = len(self.drawn - self.outcomes.keys() - self.open)
        told += [f"{left:,} left at the end"] if left else []
        attempts = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        text = f"{len(self.drawn):,} prompts in {attempts}: {', '.join(told) or 'no outcome yet'}"
        if self.balanced:
            return text
        more = f" (and {len(self.faults) - 1:,} more)" if len(self.faults) > 1 else ""
        return f"{text}; does not balance: {self.faults[0]}{more}"


def check_prompts(run: Run) -> PromptBalance | None:
    """The balance of a run's prompt journal, held against its checkpoints and episodes; None where it never had one."""
    path = run.path / PROMPTS_FILE
    # Before the journal, which may be growing: it then holds all that they count.
    checkpoints = [each for each in list_checkpoints(run.checkpoints) if PROMPTS_FILE in each.offsets]
    if not path.is_file() and not checkpoints:
        return None
    audit, data = _Audit(), path.read_bytes() if path.is_file() else b""
    if checkpoints:
        audit.compare_size(path, len(data), checkpoints[-1])
    for offset, line, text in _lines(data):
        audit.read(offset, line, _row(text))
    audit.end()
    if not audit.lacks_rows:
        for checkpoint in checkpoints:
            audit.compare_frames(checkpoint)
        if checkpoints:
            audit.compare_episodes(run.path / EPISODES_FILE, checkpoints[-1])
    return audit.balance


class _Audit:
    """Reads a journal row by row (final). `lacks_rows` if an attempt began when rows before it were gone."""

    def __init__(self) -> None:
        self.balance = PromptBalance()
        self.lacks_rows = False
        self._begun_before: set[int] = set()
        self._first_frames = 0
        self._ready: set[int] = set()
        self._generated: set[int] = set()
        self._turns: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)

    def read(self, offset: int, line: int, row: dict[str, Any] | None) -> None:
        """Take in a row, or None where a line is none."""
        if row is None:
            self._fault(line, "this line is no row of the journal; what it said is lost")
            return
        if row["event"] == START:
            self._start(offset, line, row)
            return
        if not self.balance.attempts and not self.balance.drawn:
            self._fault(line, "the row is lost that an attempt begins with")
        event, place = row["event"], row["prompt"]
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

    def compare_size(self, path: Path, size: int, checkpoint: Checkpoint) -> None:
        """The journal is as long as it was at a checkpoint, at least."""
        expected = checkpoint.offsets[PROMPTS_FILE]
        if size < expected:
            self.balance.faults.append(
                f"{shown(path)} lacks {expected - size:,} of the {expected:,} bytes that it had at"
                f" {shown(checkpoint.path)}"
            )

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
        rows = (parse_row(text) for _, _, text in _lines(data))
        episodes = Counter(row.get("item") for row in rows if row.get("split") == "train")
        prompts: Counter[str | None] = Counter()
        for each in self._until(checkpoint):
            prompts[each.row["problem"]] += each.row["completions"]
        for problem in sorted((episodes - prompts) | (prompts - episodes), key=str)[:MOST_FAULTS]:
            self.balance.faults.append(
                f"{problem} has {episodes[problem]} episodes, and {prompts[problem]} completions in the journal"
            )

    def _until(self, checkpoint: Checkpoint) -> Iterator[Outcome]:
        return (each for each in self.balance.outcomes.values() if each.offset < checkpoint.offsets[PROMPTS_FILE])

    def _start(self, offset: int, line: int, row: dict[str, Any]) -> None:
        """An attempt begins: outcomes after its checkpoint count no more, and those before it must be as it says."""
        found, had = self.balance, {*range(row["next"])} - {*row["owed"]}
        if not found.attempts:
            self._begun_before, self._first_frames = had, row["frames"]
        if offset < row["offset"]:
            self.lacks_rows, self._begun_before = True, self._begun_before | had
            self._fault(
                line,
                f"{row['offset'] - offset:,} of the {row['offset']:,} bytes were gone that the journal had at the"
                f" checkpoint of frame {row['frames']:,}; no balance can be struck of the prompts before it",
            )
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


def _lines(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The whole lines, each with the byte where it begins and its number; one that was cut by a kill is left out."""
    offset = 0
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        if line:
            yield offset, number, line
        offset += len(line) + 1


def _row(line: bytes) -> dict[str, Any] | None:
    """A row of the journal with all that its event says; None where a line is none."""
    row = parse_row(line)
    needed = FIELDS.get(str(row.get("event")))
    return row if needed and all(type(row.get(name)) is kind for name, kind in needed.items()) else None


def _named(row: dict[str, Any]) -> str:
    if row["event"] != "dropped":
        return str(row["event"])
    return f"dropped ({str(row['reason']).partition(':')[0]})"
