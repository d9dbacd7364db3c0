"""Shell completion without the command line's library: bash, zsh and fish are answered from the completion table.

The scripts that `operant --install-completion` installs are Typer's, and so is the protocol: the shell's name in
`_OPERANT_COMPLETE`, the words typed in COMP_WORDS (bash) or _TYPER_COMPLETE_ARGS. Other shells are left to Typer.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any

from operant.cli import completers
from operant.cli.command_table import command_table
from operant.cli.completers import Offer

BREAKS = "=:"
"""Where bash breaks a word in two; it takes an answer in place of the last piece."""


def answer(instruction: str) -> None:
    """Print what the shell asks for and end the program; return where the shell is not one of these."""
    if instruction == "complete_bash":
        words, at = _bash_words()
        lines = [value[at:] for value, _ in offers(words[1:-1], words[-1])]
    elif instruction == "complete_zsh":
        words = _typed_words()
        found = [_zsh(*offer) for offer in offers(words[1:-1], words[-1])]
        lines = [f"_arguments '*: :(({chr(10).join(found)}))'" if found else "_files"]
    elif instruction == "complete_fish":
        words = _typed_words()
        lines = [f"{value}\t{' '.join(about.split())}" for value, about in offers(words[1:-1], words[-1])]
        if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
            sys.exit(0 if lines else 1)
    else:
        return
    print("\n".join(lines))
    sys.exit(0)


def offers(args: list[str], incomplete: str) -> list[Offer]:
    """What may stand at the end of a command line: `args` are the whole words behind `operant`."""
    commands = command_table()
    entry: Any = {"commands": commands}
    rest = list(args)
    while "commands" in entry:
        if not rest:
            return _abouts(entry["commands"], incomplete)
        entry = entry["commands"].get(rest.pop(0))
        if entry is None:
            return []
    taking = {name: option["completer"] for option in entry["options"] if option["takes"] for name in option["names"]}
    if rest and rest[-1] in taking:
        return _completed(taking[rest[-1]], rest, incomplete)
    if incomplete.startswith("-"):
        names = [(name, option["about"] or "") for option in entry["options"] for name in option["names"]]
        return _begun([offer for offer in names if offer[0].startswith("--") or incomplete != "--"], incomplete)
    pairs = zip(["", *rest], rest, strict=False)
    position = sum(1 for before, word in pairs if not word.startswith("-") and before not in taking)
    arguments, is_first = entry["arguments"], position == 0
    if arguments and position >= len(arguments) and arguments[-1]["many"]:
        position = len(arguments) - 1
    if position >= len(arguments):
        return []
    found = _completed(arguments[position]["completer"], rest, incomplete)
    # A command is a topic of `operant help` too.
    is_topic = is_first and arguments[position]["completer"] == "complete_topic"
    return sorted(dict([*found, *_abouts(commands, incomplete)]).items()) if is_topic else found


def _abouts(commands: dict[str, Any], incomplete: str) -> list[Offer]:
    return _begun([(name, each["about"]) for name, each in commands.items()], incomplete)


def _begun(found: list[Offer], incomplete: str) -> list[Offer]:
    return [offer for offer in found if offer[0].startswith(incomplete)]


def _completed(completer: str, args: list[str], incomplete: str) -> list[Offer]:
    return getattr(completers, completer)(args, incomplete) if completer else []


def _bash_words() -> tuple[list[str], int]:
    """The words up to the cursor, whole again, and how much of the last one bash holds already."""
    pieces = _split(os.environ["COMP_WORDS"])[: int(os.environ["COMP_CWORD"]) + 1]
    if len(pieces) <= int(os.environ["COMP_CWORD"]):
        pieces.append("")
    words: list[str] = []
    for piece in pieces:
        if words and (piece in BREAKS or words[-1][-1:] in BREAKS) and piece != "" and len(words) > 1:
            words[-1] += piece
        else:
            words.append(piece)
    last = words[-1]
    return words, max(last.rfind(mark) for mark in BREAKS) + 1


def _typed_words() -> list[str]:
    """The words of the other shells, the last one empty where a new word begins."""
    typed = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(typed)
    return [*words, ""] if typed.endswith(" ") or len(words) < 2 else words


def _split(text: str) -> list[str]:
    """Words as the shell has them; a quote that is still open ends with the line."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


def _zsh(value: str, about: str) -> str:
    marks = str.maketrans({'"': '""', "'": "''", "$": "\\$", "`": "\\`", ":": "\\\\:"})
    shown = f'"{value.translate(marks)}"'
    return f'{shown}:"{" ".join(about.split()).translate(marks)}"' if about else shown
