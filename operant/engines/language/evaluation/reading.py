"""Answers for a person to read: the problem, what was said, and what it was worth."""

from __future__ import annotations

from pathlib import Path

from operant.errors import UsageError
from operant.run.episode import Episode


def read_aloud(episodes: list[Episode], sink: str | Path) -> list[Episode]:
    """Print episodes, or write them to a .txt file."""
    words = "\n\n".join(map(in_words, episodes))
    if isinstance(sink, Path) and sink.suffix in (".gif", ".mp4", ".html"):
        # A film was only the default where there is no screen.
        if sink.parent.name != "media":
            raise UsageError(f"text makes no film: {sink.name}", remedy="--out answers.txt, or leave --out away")
        print(words, flush=True)
    elif isinstance(sink, Path):
        sink.parent.mkdir(parents=True, exist_ok=True)
        sink.write_text(words + "\n")
    else:
        print(words, flush=True)
    return episodes


def in_words(episode: Episode) -> str:
    """One episode as lines."""
    score = "not judged" if episode.score is None else f"{episode.score:g}"
    head = f"{episode.item}: {score}" + ("" if episode.ended == "terminated" else f" ({episode.ended})")
    turns = [f"  {turn.role}: {turn.text.strip()}" for turn in episode.turns]
    return "\n".join([head, *turns, *([f"  error: {episode.error}"] if episode.error else [])])
