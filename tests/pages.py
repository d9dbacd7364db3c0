"""The code blocks of README.md and of docs/, and the command lines in them. The generated reference is left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md"]
PAGES += sorted(page for page in (ROOT / "docs").rglob("*.md") if "reference" not in page.relative_to(ROOT).parts)
SHELL = ("sh", "bash")
_FENCE = re.compile(r"^(?P<indent> *)```+ *(?P<kind>[\w-]*)")
_SPAN = re.compile(r"(?<!`)`(operant [^`]+)`(?!`)")
_SEPARATORS = ("|", "&&", "||", ";", "&")


@dataclass(frozen=True)
class Place:
    """A text with where it stands; `line` is that of its first line."""

    page: Path
    line: int
    text: str
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Place]:
    """The fenced blocks of a page; `kind` is the word behind the fence."""
    opened: tuple[int, str, str] | None = None
    inside: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if fence and opened is None:
            opened, inside = (number + 1, fence["kind"], fence["indent"]), []
        elif fence and opened is not None:
            yield Place(page, opened[0], "\n".join(inside), opened[1])
            opened = None
        elif opened is not None:
            inside.append(line.removeprefix(opened[2]))


def shell_lines(block: Place) -> Iterator[Place]:
    """The commands of a shell block; one that goes on behind a backslash or an open quote is one line."""
    waiting, began = "", block.line
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        began = began if waiting else number
        waiting += line
        if waiting.endswith("\\"):
            waiting = waiting[:-1] + " "
            continue
        try:
            words = shlex.split(waiting, comments=True)
        except ValueError:  # a quote is open
            waiting += "\n"
            continue
        if words:
            yield Place(block.page, began, waiting.strip())
        waiting = ""


def commands(page: Path) -> Iterator[Place]:
    """Every `operant ...` of a page's shell blocks, the words of its variables filled in."""
    variables: dict[str, str] = {}
    for block in blocks(page):
        for line in shell_lines(block) if block.kind in SHELL else ():
            text = re.sub(r"\$(\w+)", lambda found: variables.get(found[1], found[0]), line.text)
            for name, quoted, plain in re.findall(r'(?:^|(?<= ))(\w+)=(?:"([^"]*)"|([\w.-]+))(?= |$)', text):
                variables[name] = quoted or plain
            for command in _operant(text):
                yield Place(page, line.line, shlex.join(command), "command")


def mentions(page: Path) -> Iterator[Place]:
    """Every `operant ...` that a page names in a sentence or a table, or shows behind a `$` with its output."""
    shown = [line for block in blocks(page) if block.kind not in SHELL for line in _prompts(block)]
    yield from shown
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        yield from (Place(page, number, found[1], "mention") for found in _SPAN.finditer(line))


def _prompts(block: Place) -> Iterator[Place]:
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        if line.startswith("$ operant "):
            yield Place(block.page, number, shlex.join(shlex.split(line[2:], comments=True)), "mention")


def _operant(text: str) -> Iterator[list[str]]:
    """The parts of a command line that call `operant`, without what the shell takes for itself."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    part: list[str] = []
    for word in [*lexer, ";"]:
        if word not in _SEPARATORS:
            part.append(word)
            continue
        if "operant" in part:
            found = part[part.index("operant") :]
            yield found[: min((found.index(sign) for sign in (">", "<") if sign in found), default=len(found))]
        part = []
