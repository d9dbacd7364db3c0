"""What a language run says of itself while it trains: KL, entropy, lengths, and one completion with its reward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.report.formatting import score
from operant.report.tail import Tail
from operant.run import layout

# The first of each that a row has: the distance to the reference model says more than that of one update.
SIGNALS = {
    "KL": ("policy/reference_kl", "policy/kl"),
    "entropy": ("policy/entropy",),
    "length": ("train/length",),
}
SAMPLE_WIDTH = 100


@dataclass(frozen=True)
class Sample:
    """The last prompt of an episode, what the model wrote, and what it was paid."""

    prompt: str
    completion: str
    reward: float | None

    def line(self, width: int = SAMPLE_WIDTH) -> str:
        """One line that fits: `sample  2 + 2 =  ->  4  (reward 1.000)`."""
        ending = f"  (reward {score(self.reward)})"
        room = max(20, width - len("sample    ->  ") - len(ending))
        half = room // 2
        prompt, completion = one_line(self.prompt), one_line(self.completion)
        # The end of a prompt is the question, the beginning of a completion is the answer.
        prompt = prompt if len(prompt) <= half else "..." + prompt[3 - half :]
        left = room - len(prompt)
        completion = completion if len(completion) <= left else completion[: left - 3] + "..."
        return f"sample  {prompt}  ->  {completion}{ending}"


def signals_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The signals of a language run's rows; none of a run that makes no tokens."""
    if not row.get("tokens"):
        return {}
    found = {name: next((row[key] for key in keys if key in row), None) for name, keys in SIGNALS.items()}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def signals_text(signals: Mapping[str, float]) -> str:
    """`KL 0.0031  entropy 1.284  length 34.20`."""
    return "  ".join(f"{name} {score(value)}" for name, value in signals.items())


def one_line(text: str) -> str:
    """Without line ends, and without what would move a terminal's cursor."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


class SampleReader:
    """The newest completion in a session's episodes."""

    def __init__(self, session: Path) -> None:
        self._tail = Tail(session / layout.EPISODES_FILE)
        self._newest: Sample | None = None

    def read(self) -> Sample | None:
        """What was written last, or None before the first."""
        rows = self._tail.read()
        if self._tail.is_history:
            self._newest = None
        for row in reversed(rows):
            if sample := sample_of(row):
                self._newest = sample
                break
        return self._newest


def sample_of(row: Mapping[str, Any]) -> Sample | None:
    """The last answer of an episode and what it answered; None of an episode without words."""
    turns = [turn for turn in row.get("turns") or [] if isinstance(turn, dict)]
    places = [at for at, turn in enumerate(turns) if turn.get("role") == "assistant"]
    if not places:
        return None
    last = places[-1]
    prompt = str(turns[last - 1].get("text") or "") if last else ""
    return Sample(prompt, str(turns[last].get("text") or ""), row.get("score"))
