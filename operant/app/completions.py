"""What a policy wrote last, read from the ends of the files of episodes: a long run costs no more than a short one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from operant.report.episodes import episode_files
from operant.report.timeline import POLICY
from operant.run.episode import Episode

MOST = 20
LAST_BYTES = 256 << 10
CHUNK = 1 << 20


def completions(path: Path) -> dict[str, Any]:
    """The newest episodes that have words, at most `MOST`: what was asked, what was written, what it was worth.

    `count` is the number of all episodes. `place` is understood as the name of an episode.
    """
    lines: dict[Path, int] = {file: _count(file) for file in episode_files(path)}
    found = [sample for file, count in lines.items() for sample in _last(path, file, count)]
    found.sort(key=lambda sample: (sample["frames"], sample["updates"], sample["line"]), reverse=True)
    return {"count": sum(lines.values()), "samples": found[:MOST]}


def _count(file: Path) -> int:
    with file.open("rb") as opened:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: opened.read(CHUNK), b""))


def _last(base: Path, file: Path, count: int) -> Iterator[dict[str, Any]]:
    """The last episodes of a file that have words, the newest first."""
    with file.open("rb") as opened:
        size = file.stat().st_size
        opened.seek(max(0, size - LAST_BYTES))
        lines = opened.read().split(b"\n")[:-1]
    whole = lines if size <= LAST_BYTES else lines[1:]
    given = 0
    for back, line in enumerate(reversed(whole)):
        episode = _parsed(line)
        if episode is None or not any(turn.role == POLICY for turn in episode.turns):
            continue
        yield _sample(episode, file.relative_to(base).as_posix() if file != base else "", count - back)
        given += 1
        if given == MOST:
            return


def _parsed(line: bytes) -> Episode | None:
    try:
        return Episode.from_dict(json.loads(line))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _sample(episode: Episode, file: str, line: int) -> dict[str, Any]:
    score = None if episode.score is None or episode.score != episode.score else episode.score
    return {
        "place": f"{file}@{line}",
        "line": line,
        "item": episode.item,
        "split": episode.split,
        "frames": episode.at.frames,
        "updates": episode.at.updates,
        "tokens": sum(turn.tokens for turn in episode.turns if turn.role == POLICY),
        "score": score,
        "parts": dict(episode.parts),
        "turns": [
            {"role": turn.role, "who": turn.role, "text": turn.text, "reward": turn.reward} for turn in episode.turns
        ],
    }
