"""What a policy's words ask for: one action a message, in any of three forms.

1. A tool call in JSON, between <tool_call> and </tool_call> or as the whole message.
2. A fenced block that names the tool: ```bash, ```write PATH, ```edit PATH, ```view PATH, ```validate, ```submit.
3. A line that begins with the tool's name, for models of few words: write plan.txt 20 20 20.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from operant.envs.text.well_formed import is_well_formed

ARGUMENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # those that are needed, and those that may be
    "bash": (("command",), ("stdin",)),
    "view": (("path",), ("from", "to")),
    "write": (("path", "content"), ()),
    "edit": (("path", "old", "new"), ()),
    "validate": ((), ()),
    "submit": ((), ()),
}
TOOLS = tuple(ARGUMENTS)
SHELLS = ("sh", "shell", "python")

THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
# Possessive, for a line such as ```aaa...` must not be tried at every length of its word.
FENCE = re.compile(r"^(`{3,}+)(\w++)[ \t]*+([^\n`]*+)\n(.*?)(^\1[ \t]*+$|\Z)", re.DOTALL | re.MULTILINE)
OLD, BETWEEN, NEW = "<" * 7, "=" * 7, ">" * 7
LONGEST = 1 << 20
LONGEST_PATH = 4_095  # bytes: what Linux takes

HOW = "answer with one tool call or one fenced block, such as ```bash"


class Misspoken(Exception):
    """The words ask for nothing that can be done; the text says why."""


@dataclass(frozen=True)
class Action:
    """A tool and its arguments; `more` says that the message asked for further actions, which are not done."""

    tool: str
    arguments: Mapping[str, Any]
    more: bool = False


def parse(text: str, cut: bool = False) -> Action:
    """The first action of a message; `cut` says that its end is missing. `Misspoken` where there is none."""
    if len(text) > LONGEST:
        raise Misspoken(f"the message is longer than {LONGEST} characters")
    text = THOUGHT.sub("", text)
    for form in (_calls, _blocks, _lines):
        if found := form(text, cut):
            return _checked(*found[0], more=len(found) > 1)
    raise Misspoken(f"the message was cut by its length; {HOW}" if cut else f"no action found; {HOW}")


Found = list[tuple[str, dict[str, Any]]]


def _calls(text: str, cut: bool) -> Found:
    """Tool calls in JSON; a text that is one JSON object is one as well."""
    marked = CALL.findall(text)
    whole = [text] if text.strip().startswith("{") and '"name"' in text else []
    return [_call(words, cut) for words in (marked or whole)]


def _call(words: str, cut: bool) -> tuple[str, dict[str, Any]]:
    try:
        call = json.loads(words.strip())
        arguments = call.get("arguments") or {}
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        return str(call["name"]), dict(arguments)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        why = "it was cut by its length" if cut else str(problem)
        form = '{"name": "bash", "arguments": {"command": "ls"}}'
        raise Misspoken(f"the tool call is no JSON of the form {form}: {why}") from problem


def _blocks(text: str, cut: bool) -> Found:
    """Fenced blocks whose info string names a tool."""
    found: Found = []
    for _, tool, rest, body, closing in FENCE.findall(text):
        if tool not in TOOLS and tool not in SHELLS:
            continue
        if cut and not closing:
            raise Misspoken(f"the block {tool} was cut by the message's length, so nothing was done")
        found.append(_block(tool, rest.strip(), body))
    return found


def _block(tool: str, rest: str, body: str) -> tuple[str, dict[str, Any]]:
    if tool == "python":
        return "bash", {"command": "python3 -", "stdin": body}
    if tool in ("bash", *SHELLS):
        return "bash", {"command": body.rstrip("\n")}
    if tool == "write":
        return tool, {"path": rest, "content": body} if rest else {"content": body}
    if tool == "edit":
        return tool, {**({"path": rest} if rest else {}), **_parts(body)}
    return _worded(tool, rest or body.strip())


def _parts(body: str) -> dict[str, Any]:
    """What is replaced by what, part by part."""
    olds: list[list[str]] = []
    news: list[list[str]] = []
    side: list[list[str]] | None = None
    for line in body.splitlines(keepends=True):
        if line.startswith(OLD):
            olds.append([])
            side = olds
        elif side is olds and line.startswith(BETWEEN):
            news.append([])
            side = news
        elif side is news and line.startswith(NEW):
            side = None
        elif side is not None:
            side[-1].append(line)
    if not olds or len(olds) != len(news) or side is not None:
        raise Misspoken("an edit needs lines `<<<<<<< old`, the old text, `=======`, the new text, `>>>>>>>`")
    return {"old": ["".join(lines) for lines in olds], "new": ["".join(lines) for lines in news]}


def _lines(text: str, cut: bool) -> Found:
    """Lines that begin with a tool's name; a tool without arguments must stand alone in its line."""
    found: Found = []
    for line in text.splitlines():
        tool, _, rest = line.rstrip().partition(" ")
        rest = rest.strip()
        alone = tool in TOOLS and not ARGUMENTS[tool][0]
        if tool in TOOLS and tool != "edit" and alone == (not rest):
            found.append(_worded(tool, rest))
    if cut and len(found) == 1 and not text.endswith("\n") and found[0][0] in ("write", "bash"):
        raise Misspoken("the message was cut by its length, so nothing was done")
    return found


def _worded(tool: str, words: str) -> tuple[str, dict[str, Any]]:
    """A tool and its arguments in one line."""
    if tool == "bash":
        return tool, {"command": words}
    if tool == "write":
        path, _, content = words.partition(" ")
        return tool, {"path": path, "content": f"{content.strip()}\n"}
    if tool == "view":
        return tool, dict(zip(("path", "from", "to"), words.split(), strict=False))
    return tool, {}


def _checked(tool: str, arguments: dict[str, Any], more: bool) -> Action:
    if tool not in TOOLS:
        raise Misspoken(f"there is no tool {tool[:40]!r}; there are {', '.join(TOOLS)}")
    needed, possible = ARGUMENTS[tool]
    for name in needed:
        if name not in arguments:
            raise Misspoken(f"{tool} needs {name}")
    for name in arguments:
        if name not in (*needed, *possible):
            takes = ", ".join((*needed, *possible)) or "nothing"
            raise Misspoken(f"{tool} takes no {str(name)[:40]!r}; it takes {takes}")
    return Action(tool, {name: _typed(tool, name, value) for name, value in arguments.items()}, more)


def _typed(tool: str, name: str, value: Any) -> Any:
    """An argument as its tool takes it: the number of a line, a list of texts, or a text."""
    if name in ("from", "to"):
        return _line_number(tool, name, value)
    if name in ("old", "new"):
        parts = value if isinstance(value, list) else [value]
        return [_text(tool, name, part) for part in parts]
    return _text(tool, name, value)


def _line_number(tool: str, name: str, value: Any) -> int:
    # Only of a text or a number is it known that it can be shown: a list may be nested too deeply for that.
    plain = str(value) if isinstance(value, str | int) else f"a {type(value).__name__}"
    if not re.fullmatch(r"[0-9]{1,9}", plain):
        raise Misspoken(f"{tool}: {name} is the number of a line, not {plain[:40]!r}")
    return int(plain)


def _text(tool: str, name: str, value: Any) -> str:
    """A text that programs and files can be given."""
    if not isinstance(value, str):
        raise Misspoken(f"{tool}: {name} must be text")
    if not is_well_formed(value):
        raise Misspoken(f"{tool}: {name} holds half of a surrogate pair, such as \\ud800, which is no character")
    if "\0" in value and name in ("path", "command", "stdin"):
        raise Misspoken(f"{tool}: {name} holds a zero byte")
    if name == "path" and len(value.encode()) > LONGEST_PATH:
        raise Misspoken(f"{tool}: path is longer than {LONGEST_PATH} bytes")
    return value
