"""Values that move with the frames: `{name, start_val, end_val, start_step, end_step}`."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section

NO_COUNTERPART = "has no counterpart: a schedule here is a number or a straight line"


def schedule(section: Section, key: str, native: str, default: float | None = None, least: float = 0.0) -> None:
    """Take over the schedule under `key`; `default` is what its absence means in SLM-Lab, `least` its end for 0."""
    if section.get(key) is None:
        if default is not None:
            section.ledger.set(native, default, section.at(key))
        return
    given = section.below(key)
    kind, start, end = given.need("name"), given.need("start_val"), given.get("end_val")
    begin, finish = given.whole("start_step", 0), given.whole("end_step", 0)
    given.close()
    if kind == "no_decay":
        section.ledger.set(native, start, given.at("start_val"))
        if end not in (None, start):
            section.ledger.remark(given.at("end_val"), "left out: no_decay never leaves start_val")
    elif kind == "linear_decay":
        _line(given, native, begin, finish, least)
    elif kind is not None:
        section.ledger.lose(given.at("name"), NO_COUNTERPART)


def _line(given: Section, native: str, begin: int, finish: int, least: float) -> None:
    ledger, start, end = given.ledger, given.get("start_val"), given.need("end_val")
    if start == end or finish <= begin:
        ledger.set(native, end, given.at("end_val"))
        return
    ledger.set(f"{native}.start", start, given.at("start_val"))
    ledger.set(f"{native}.end", least if end == 0 else end, given.at("end_val"))
    if begin:
        ledger.set(f"{native}.begin", begin, given.at("start_step"))
    ledger.set(f"{native}.frames", finish - begin, given.at("end_step"))
    if end == 0:
        ledger.remark(
            given.at("end_val"),
            f"the value does end at {least:g} here; SLM-Lab takes a 0 for start_val and stays there",
        )
    elif _is_number(start) and _is_number(end) and end > start:
        ledger.remark(given.at("end_val"), "the value does rise here; SLM-Lab's linear_decay begins at the higher end")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
