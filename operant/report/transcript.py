"""Episodes as plain text: one as a timeline, two side by side, many as a list."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from operant.report.episodes import Catalogue, Entry
from operant.report.formatting import columns, duration
from operant.report.formatting import score as score_text
from operant.report.timeline import Step, parting, same_opening, side_by_side, steps, totals
from operant.run.episode import Episode, Turn

NARROWEST = 40
GAP = 3
PIECE = 4_000  # characters
# A control character could drive the terminal: it is shown by its picture, or as one that has none.
VISIBLE = {
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}"),
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "\N{SYMBOL FOR DELETE}",
}


@dataclass(frozen=True)
class Page:
    """How text is set: `head` and `tail` are the lines that are kept of a long one, None for all of it."""

    width: int = 100
    head: int | None = 12
    tail: int = 6
    unicode: bool = True

    @property
    def rule(self) -> str:
        """The mark before a turn."""
        return "──" if self.unicode else "--"

    @property
    def bar(self) -> str:
        """The mark before its words."""
        return "│ " if self.unicode else "| "

    def half(self) -> Page:
        """The page of one of two columns."""
        return Page(max(NARROWEST, (self.width - GAP) // 2), self.head, self.tail, self.unicode)


def transcript(episode: Episode, name: str, page: Page) -> list[str]:
    """One episode: what it was, what it came to, and its turns."""
    lines = [line for step in steps(episode) for line in ("", *_step(step, page))]
    return [*heading(episode, name), *(lines or ["", "no turns were kept of this episode"])]


def heading(episode: Episode, name: str) -> list[str]:
    """Task, item, split and policy; score and parts; size and time; the error, where there is one."""
    version = "" if episode.version is None else f"policy version {episode.version}"
    what = [name, episode.env, f"item {episode.item}" if episode.item else "", episode.split, version]
    lines = ["  ".join(part for part in what if part), score_line(episode), size_line(episode)]
    if episode.parent is not None:
        lines.append(f"continues {episode.parent}")
    if episode.error is not None:
        lines.append(f"error: {episode.error}")
    return lines


def score_line(episode: Episode) -> str:
    """`score 0.4120  (hidden 0.1030, best 0.5000)`."""
    parts = ", ".join(f"{name} {value:g}" for name, value in episode.parts.items())
    score = "no score" if episode.score is None else f"score {score_text(episode.score)}"
    return f"{score}  ({parts})" if parts else score


def size_line(episode: Episode) -> str:
    """`7 turns, 1,204 tokens written, 3,410 read, 1 fault, 12 s, terminated at frame 6,400`."""
    found = totals(episode)
    facts = [
        _count(found.turns, "turn") if episode.turns else f"length {episode.length:,}",
        f"{_count(found.written, 'token')} written" if found.written else "",
        f"{found.read:,} read" if found.read else "",
        _count(found.faults, "fault") if found.faults else "",
        duration(found.seconds) if found.seconds is not None else "",
        f"{episode.ended} at frame {episode.at.frames:,}",
    ]
    return ", ".join(fact for fact in facts if fact)


def comparison(first: tuple[str, Episode], second: tuple[str, Episode], page: Page) -> list[str]:
    """Two episodes in two columns, turn beside turn."""
    half = page.half()
    lines = _beside([_wrapped(heading(episode, name), half) for name, episode in (first, second)], half)
    apart = parting(first[1], second[1])
    lines += ["", "they are the same throughout" if apart is None else f"they diverge at turn {apart}"]
    for pair in side_by_side(first[1], second[1]):
        lines += ["", *_pair(pair, page)]
    return lines


def listing(catalogue: Catalogue, entries: Sequence[Entry], limit: int) -> list[str]:
    """Episodes one to a line, at most `limit` of them, and how many there are."""
    if not entries:
        return ["no episodes match"]
    head = ["episode", "task", "item", "split", "version", "score", "turns", "tokens", "time", "ended", ""]
    rows = [_row(catalogue.name_of(entry), entry) for entry in entries[:limit]]
    used = [place for place in range(len(head)) if any(row[place] for row in rows)]
    table = [[row[place] for place in used] for row in [head, *rows]]
    right = {
        place for place, column in enumerate(used) if head[column] in ("version", "score", "turns", "tokens", "time")
    }
    rest = len(entries) - limit
    return [
        *columns(table, right),
        *([f"and {rest:,} more; --limit {len(entries)} lists them all"] if rest > 0 else []),
    ]


def fold(text: str, page: Page, hint: str = "--full shows them") -> list[str]:
    """The lines of a text within the page's width, the middle of a long one left out."""
    lines = _wrapped(text.splitlines() or [""], page)
    if page.head is None or len(lines) <= page.head + page.tail + 1:
        return lines
    left_out = len(lines) - page.head - page.tail
    return [*lines[: page.head], f"... {left_out:,} lines more; {hint}", *lines[-page.tail :]]


def _step(step: Step, page: Page) -> list[str]:
    """A step: a line of facts, then the words of each who spoke."""
    lines = _wrapped([f"{page.rule} {_facts(step)}"], page)
    if step.fault:
        lines += _wrapped([f"!! fault: {step.fault}"], page)
    for turn in step.turns:
        inner = Page(page.width - len(page.bar), page.head, page.tail, page.unicode)
        lines += [_speaker(turn), *(f"{page.bar}{line}".rstrip() for line in fold(turn.text, inner))]
    return lines


def _pair(pair: tuple[Step | None, Step | None], page: Page) -> list[str]:
    """Two steps of one number; an opening that both share is printed once."""
    if same_opening(*pair):
        return _step(pair[0], page) if pair[0] else []
    half = page.half()
    return _beside([_step(step, half) if step else ["(over)"] for step in pair], half)


def _facts(step: Step) -> str:
    facts = [
        f"turn {step.number}" if step.number else "opening",
        step.tool or "",
        f"reward {step.reward:+.4g}" if step.reward is not None else "",
        f"score {score_text(step.score)}" if step.score is not None else "",
        _count(step.tokens, "token") if step.said else "",
        duration(step.seconds) if step.seconds is not None else "",
        f"total {step.total:+.4g}" if step.reward is not None else "",
    ]
    return "  ".join(fact for fact in facts if fact)


def _speaker(turn: Turn) -> str:
    return f"{turn.role} {turn.tool}" if turn.tool and turn.role == "tool" else turn.role


def _row(name: str, entry: Entry) -> list[str]:
    faults = _count(entry.faults, "fault") if entry.faults else ""
    return [
        name,
        entry.env,
        entry.item or "",
        entry.split,
        "" if entry.version is None else str(entry.version),
        score_text(entry.score),
        str(entry.turns) if entry.turns else "",
        f"{entry.tokens:,}" if entry.tokens else "",
        "" if entry.took is None else duration(entry.took),
        entry.ended,
        ", ".join(part for part in (faults, entry.error or "") if part),
    ]


def _beside(sides: Sequence[list[str]], half: Page) -> list[str]:
    left, right = sides
    height = max(len(left), len(right))
    padded = ([*lines, *[""] * (height - len(lines))] for lines in (left, right))
    bar = f" {half.bar}"
    return [f"{one:<{half.width}}{bar}{other}".rstrip() for one, other in zip(*padded, strict=True)]


def _wrapped(lines: Iterable[str], page: Page) -> list[str]:
    """The lines, each broken where it is wider than the page; tabs and odd control characters made visible."""
    setter = textwrap.TextWrapper(page.width, replace_whitespace=False)
    clean = (line.expandtabs(4).translate(VISIBLE) for line in lines)
    return [part for line in clean for piece in _pieces(line) for part in setter.wrap(piece) or [""]]


def _pieces(line: str) -> Iterator[str]:
    """A line in pieces that the wrapper, which takes the square of a word's length, breaks at once."""
    return (line[at : at + PIECE] for at in range(0, len(line) or 1, PIECE))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
