"""The labs whose spec files are understood, and how each of them is recognized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from operant.spec.dialects import hackmatrix, prime_rl, rlvr
from operant.spec.dialects.converter import Converter
from operant.spec.dialects.slm.convert import convert, is_slm
from operant.spec.dialects.table import Table
from operant.spec.reading.document import lookup


@dataclass(frozen=True)
class Lab:
    """Another lab: what a file of its is called, how plain data is recognised; `convert` translates it.

    `name_path` is where such a file, which then holds one spec only, says what the run is called. With `variables` a
    `${NAME}` of its is one of the environment.
    """

    title: str
    recognises: Callable[[Any], bool]
    convert: Converter
    name_path: tuple[str, ...] = ()
    variables: bool = False

    def name_in(self, data: Any) -> str | None:
        """What the file calls its run, if it does."""
        found = lookup(data, self.name_path) if self.name_path else None
        return found if isinstance(found, str) else None


LABS = (
    Lab("an SLM-Lab spec", is_slm, convert),
    Lab("an rlvr-experiments spec", rlvr.recognises, rlvr.convert, ("run", "name")),
    Lab("a prime-rl config", prime_rl.recognises, prime_rl.convert, ("run", "name"), variables=True),
)


def lab_of(data: Any) -> Lab | None:
    """The lab that wrote plain data of this shape; None for a native spec."""
    return next((lab for lab in LABS if lab.recognises(data)), None)


def tables() -> dict[str, tuple[str, Table]]:
    """The tables of all labs that have one: its title and its rows, by the name of its page."""
    found = {lab.convert.lab.lower(): (lab.convert.lab, lab.convert.table) for lab in LABS}
    found["hackmatrix"] = ("HackMatrix", hackmatrix.TABLE)
    return {name: each for name, each in found.items() if each[1].rows}
