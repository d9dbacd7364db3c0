"""Finding the program in an answer."""

from __future__ import annotations

import re

_FENCED = re.compile(r"```[ \t]*[\w+.-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+.-]*)", re.MULTILINE)
_DEFINITION = re.compile(r"(?:def|class|async def|import|from)\s|@|#|[)\]}]")

BEGIN, DONE, FENCE = "[BEGIN]", "[DONE]", "```"


def fenced(text: str) -> str | None:
    """The code of all fenced blocks, joined; None if there is none. A last block need not be closed.

    A first fence that is bare and has no partner closes a block which was opened before the answer began.
    """
    fences = _FENCE.findall(text)
    if len(fences) % 2 and not fences[0]:
        return None
    blocks = _FENCED.findall(text)
    return "\n".join(blocks) if blocks else None


def whole_program(completion: str) -> str:
    """The program of an answer that is one: its fenced blocks, else the text up to `[DONE]` or a closing fence."""
    before, begun, after = completion.partition(DONE)[0].partition(BEGIN)
    text = after if begun and "def " not in before else before
    blocks = fenced(text)
    return blocks if blocks is not None else text.partition(FENCE)[0]


def completed_program(prompt: str, entry_point: str, completion: str) -> str:
    """The program that an answer makes of a prompt which ends inside a function.

    The answer is the rest of the function, or the function again: then it stands after the prompt, whose own one it
    replaces. Either way what follows it at the margin, but for further definitions in the second case, is dropped.
    """
    blocks = fenced(completion)
    text = blocks if blocks is not None else completion.partition(FENCE)[0]
    again = re.search(rf"^(?:async )?def {re.escape(entry_point)}\b", text, re.MULTILINE)
    if again:
        start = again.start() if blocks is None else 0
        return f"{prompt}\n    pass\n\n{definitions(text[start:])}"
    return prompt + body(text)


def body(text: str) -> str:
    """The lines up to the first that stands at the margin; a first line whose indentation was lost gets it back."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is not None and not lines[first][0].isspace():
        lines[first] = "    " + lines[first]
    kept = []
    for line in lines:
        if line[:1].strip() and line[0] not in ")]}#":
            break
        kept.append(line)
    return "\n".join(kept) + "\n"


def definitions(text: str) -> str:
    """The lines up to the first at the margin that defines nothing, such as a call or a sentence."""
    kept = []
    for line in text.split("\n"):
        if line[:1].strip() and not _DEFINITION.match(line):
            break
        kept.append(line)
    return "\n".join(kept) + "\n"
