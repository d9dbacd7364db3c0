"""The specs that ship with Operant, by name."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

from operant.spec.reading.document import Source

SECTION_NAMES = ("name", "env", "agent", "meta", "search")
TOP_KEY = re.compile(r"^(?P<comments>(?:#[^\n]*\n)*)(?P<name>[A-Za-z0-9][\w.-]*):", re.MULTILINE)
FIRST_COMMENT = re.compile(r"\A(?:# yaml-language-server:[^\n]*\n|\s)*#\s*(?P<words>[^\n]*)")


def builtin_files() -> list[Traversable]:
    """The shipped spec files, in order of name."""
    folder = files("operant") / "specs"
    return sorted((each for each in folder.iterdir() if each.name.endswith(".yaml")), key=lambda each: each.name)


def builtin_names() -> list[tuple[str, str, str]]:
    """(name, one line about it, file) of every shipped spec, found without parsing any.

    The line is the comment right above a named spec, or the first comment of a file of one spec.
    """
    found: list[tuple[str, str, str]] = []
    for each in builtin_files():
        found += [(name, about, each.name) for name, about in listed(each.name.removesuffix(".yaml"), _text(each))]
    return found


def listed(stem: str, text: str) -> list[tuple[str, str]]:
    """The (name, description) of each spec in a YAML text, by its top keys and comments alone."""
    keys = list(TOP_KEY.finditer(text))
    if any(key["name"] in SECTION_NAMES for key in keys):
        own = re.search(r"^name:\s*([\w.-]+)", text, re.MULTILINE)
        about = FIRST_COMMENT.match(text)
        return [(own[1] if own else stem, about["words"].strip() if about else "")]
    return [(key["name"], _first_line(key["comments"])) for key in keys]


def _first_line(comments: str) -> str:
    return next((line.lstrip("# ").strip() for line in comments.splitlines() if line.strip("# ")), "")


def builtin_source(name: str) -> tuple[Source, str] | None:
    """The source and file stem of the shipped spec, or file of specs, called `name`; None if there is none."""
    for each in builtin_files():
        stem, text = each.name.removesuffix(".yaml"), _text(each)
        if name == stem or name in dict(listed(stem, text)):
            return Source(text, f"operant/specs/{each.name}"), stem
    return None


def _text(file: Traversable) -> str:
    return file.read_text(encoding="utf-8")
