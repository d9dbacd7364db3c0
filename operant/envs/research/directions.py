"""The words between a policy that directs and its tree of attempts, in the two styles of research tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from operant.envs.research.attempts import ROOT, Attempt
from operant.envs.research.commands import LONGEST, THOUGHT, Misspoken
from operant.envs.research.rewards import Scale
from operant.envs.research.settings import Settings, Style

MANNERS = """You direct research; another model, the executor, carries it out in a sandbox. Every message of yours is
one attempt: it names the attempt to go on from, and says what the executor shall try. Answer in this form:

PARENT: {root}
DIRECTION: what to try, in plain words, with the numbers that matter

{root} is the beginning. {begin}
You may direct {nodes} attempts; what counts is the best of them."""
BEGINS = {
    "parent": "The executor finds the files as the attempt that you name left them.",
    "fresh": "The executor begins with the task's own files each time, and is told your direction alone.",
}
PARENT = re.compile(r"^[ \t]*PARENT:[ \t]*[\"'`]?([\w.]+)", re.MULTILINE)
DIRECTION = re.compile(
    r"^[ \t]*DIRECTION:\s*(.*?)(?=^[ \t]*(?:PARENT|MODE|MEMORY|REASONING):|\Z)", re.MULTILINE | re.DOTALL
)
HOW = "a message has a line PARENT: and then DIRECTION: with what to try"
BARE_HOW = "the number of a node, and then what to try"
SHOWN_DIRECTION = 120  # characters
LEAST_LENIENT = 5  # characters of a direction


@dataclass(frozen=True)
class Direction:
    """What a policy asked for."""

    parent: Attempt
    text: str


def parse_direction(
    text: str, nodes: Sequence[Attempt], style: Style, cut: bool = False, lenient: bool = False
) -> Direction:
    """The direction in a policy's words, of a tree whose first node is the root; `Misspoken` where there is none.

    A `lenient` reader takes words without form as a direction, and an attempt that is not there as the root.
    """
    if len(text) > LONGEST:
        raise Misspoken(f"the message is longer than {LONGEST} characters")
    text = THOUGHT.sub("", text)
    if style == "bare":
        name, _, words = text.strip().partition(" ")
    else:
        found, asked = PARENT.search(text), DIRECTION.search(text)
        name, words = found.group(1) if found else ROOT, asked.group(1) if asked else text * lenient
    if len(words.strip()) < (LEAST_LENIENT if lenient else 1):
        raise Misspoken(
            "the message was cut by its length" if cut else f"no direction: {BARE_HOW if style == 'bare' else HOW}"
        )
    known = {str(place): node for place, node in enumerate(nodes)} if style == "bare" else {}
    known |= {node.name: node for node in nodes}
    if name not in known and lenient:
        name = ROOT
    if name not in known:
        raise Misspoken(f"there is no attempt {name[:40]}; there are {', '.join(known)}")
    return Direction(known[name], words.strip())


def written_direction(parent: Attempt | None, text: str, style: Style, place: int = 0) -> str:
    """A direction as a policy would write it."""
    return f"{place} {text}" if style == "bare" else f"PARENT: {parent.name if parent else ROOT}\nDIRECTION: {text}"


def director_manners(nodes: int, begin: str) -> str:
    """How a policy directs."""
    return MANNERS.format(root=ROOT, nodes=nodes, begin=BEGINS[begin])


def result(settings: Settings, nodes: Sequence[Attempt], left: int) -> str:
    """What came of the last attempt, and the tree as it now stands."""
    last = nodes[-1]
    if settings.style == "bare":
        parent = next(place for place, node in enumerate(nodes) if node is last.parent)
        return f"{len(nodes) - 1}<{parent} {'fail' if last.shown is None else f'{last.shown:.3g}'}\n"
    why = "" if last.shown is not None else f": {last.fault or 'nothing could be scored'}"
    head = f"{last.name} {'failed' if last.shown is None else f'scored {last.shown:.6g}'}{why}"
    return f"{head}\n\n{tree_text(nodes, settings.scale)}\n\n[{left} attempts left]"


def refusal(settings: Settings, reason: str, nodes: Sequence[Attempt], left: int) -> str:
    """That a message directed nothing."""
    if settings.style == "bare":
        return f"? {reason[:40]}\n"
    return f"[fault] {reason}\n\n{tree_text(nodes, settings.scale)}\n\n[{left} attempts left]"


def tree_text(nodes: Sequence[Attempt], scale: Scale) -> str:
    """The tree in lines: each attempt below its parent, with its score and what was tried."""
    lines = [f"{ROOT}: {scale.baseline:.6g} (the baseline)"]

    def add(parent: Attempt) -> None:
        for node in (each for each in nodes if each.parent is parent):
            score = "failed" if node.shown is None else f"{node.shown:.6g}"
            tried = " ".join(node.direction.split())[:SHOWN_DIRECTION]
            lines.append(f"{'  ' * node.depth}{node.name}: {score} ({tried})")
            add(node)

    add(nodes[0])
    return "\n".join(lines)
