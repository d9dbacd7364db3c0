"""One SLM-Lab spec, from its document to a native one."""

from __future__ import annotations

from operant.spec.dialects.conversion import Conversion, Converter, Section
from operant.spec.dialects.slm.learning import NAMES
from operant.spec.dialects.slm.search import dimensions
from operant.spec.dialects.slm.shape import unwrapped
from operant.spec.dialects.slm.table import ROWS, kind_of
from operant.spec.dialects.table import Table, read, worked
from operant.spec.reading.diagnostics import nearest


def _sections(top: Section) -> None:
    conversion = top.conversion
    for key in ("agent", "env", "meta"):
        if isinstance(top.need(key), list):
            top.refuse(key, "holds several, which has no counterpart: one agent learns in one environment")
            return
    algorithm = top.below("agent").below("algorithm")
    name = algorithm.need("name")
    rows = conversion.table.chosen(conversion.kind)
    if not conversion.kind:
        rows = tuple(row for row in rows if row.parts[0] in ("name", "env", "meta"))
        near = nearest(str(name), NAMES)
        hint = f"there are {', '.join(NAMES)}" + (f"; did you mean {near}?" if near else "")
        if name is not None:
            algorithm.refuse("name", "has no counterpart in this version", hint)
        top.get("search")
    read(top, rows)
    if conversion.kind:
        top.close_all()


def _again(conversion: Conversion) -> None:
    """Convert a file anew into a conversion, for one value of a search."""
    _sections(Section(conversion, ()))


SEARCH = worked("search.*", "what a search varies, and how it is drawn", "search", dimensions(_again))
TABLE = Table((*ROWS, SEARCH), kind_of, ignores=True)
convert = Converter("SLM-Lab", _sections, TABLE, unwrapped)
