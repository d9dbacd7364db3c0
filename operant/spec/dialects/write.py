"""A translated spec as a native YAML text, with comments on what was changed or left out."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from operant.spec.dialects.conversion import Remark
    from operant.spec.load import Loaded

WIDTH = 118


def native_yaml(specs: Iterable[Loaded], origin: str) -> str:
    """A file of the specs under their names; `origin` is the file they come from."""
    return "\n".join(_spec(each, origin) for each in specs)


def spec_yaml(name: str, body: Mapping[str, Any], *about: str) -> str:
    """A file of one spec under its name, with lines about it."""
    return "".join(f"# {line}\n" for line in about) + _dumped(
        {name: {key: value for key, value in body.items() if key != "name"}}
    )


def _spec(loaded: Loaded, origin: str) -> str:
    body = {key: value for key, value in loaded.written.items() if key != "name"}
    about = f"{loaded.spec.agent.algorithm.name} on {loaded.spec.env.name}, converted from {origin}."
    said = ["What was changed or left out, by line of that file:"] if loaded.remarks else []
    lines = [
        about,
        *said,
        *(line for each in loaded.remarks for line in _remark(each, origin)),
    ]
    comments = "".join(f"# {line}\n" for line in lines)
    return comments + _dumped({loaded.spec.name: body})


def _remark(remark: Remark, origin: str) -> list[str]:
    """One remark behind its line number, folded below it; of a file beside it with that file's name."""
    label = remark.at.source.label if remark.at else None
    other = f"{PurePath(label).name}: " if label not in (None, origin) else ""
    number = f"{remark.at.line:>5}  " if remark.at else " " * 7
    text = f"{other}{remark}".removeprefix(": ")
    return textwrap.wrap(text, WIDTH, initial_indent=number, subsequent_indent=" " * 9, break_on_hyphens=False)


def _dumped(data: dict[str, Any]) -> str:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = WIDTH
    yaml.representer.add_representer(
        type(None), lambda each, _: each.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    stream = io.StringIO()
    yaml.dump(_laid_out(data), stream)
    return stream.getvalue()


def _laid_out(value: Any) -> Any:
    """Sections as blocks; lists and schedules, which are short, on one line."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if isinstance(value, Mapping):
        section = CommentedMap({key: _laid_out(each) for key, each in value.items()})
        if {"start", "end"} <= set(value):
            section.fa.set_flow_style()
        return section
    if isinstance(value, list):
        items = CommentedSeq(_laid_out(each) for each in value)
        items.fa.set_flow_style()
        return items
    return value
