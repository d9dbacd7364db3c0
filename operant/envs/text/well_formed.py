"""Text that can be encoded: tokenized, stored, printed and sent.

A Python string may hold half of a surrogate pair, which JSON lets anyone write as "\\ud800" and which no encoder takes.
Whatever a policy or its world says passes here once, where it becomes a message, a completion or tokens.
"""

from __future__ import annotations

import re

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def is_well_formed(text: str) -> bool:
    """Whether every character of a text is one that UTF-8 can hold."""
    return text.isascii() or _LONE_SURROGATE.search(text) is None


def well_formed(text: str) -> str:
    """The text, with U+FFFD in the place of every half of a surrogate pair."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
