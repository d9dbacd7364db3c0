"""SLM-Lab's JSON files may end a list or a section with a comma, which its reader forgives and JSON does not."""

from __future__ import annotations

import re
from dataclasses import replace

from operant.spec.dialects.slm.shape import is_slm
from operant.spec.document import Source

TEXT_OR_LAST_COMMA = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|,(?=\s*[}\]])', re.DOTALL)


def without_last_commas(source: Source) -> Source:
    """The text with a space for each such comma, so that every place stays where it was."""
    return replace(source, text=TEXT_OR_LAST_COMMA.sub(_blank, source.text))


def _blank(found: re.Match[str]) -> str:
    return " " if found[0] == "," else found[0]


def holds_slm(data: object) -> bool:
    """Whether a file's data is an SLM-Lab spec or has one among its named specs."""
    return is_slm(data) or (isinstance(data, dict) and any(is_slm(each) for each in data.values()))
