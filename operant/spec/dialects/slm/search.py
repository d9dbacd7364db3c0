"""The `search` block: each dimension as one of ours, of one setting or of several that vary together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from operant.spec.dialects.conversion import Conversion, Section
from operant.spec.distributions import ALIASES, Distribution, fault_in
from operant.spec.errors import dotted
from operant.spec.reading.document import KeyPath, lookup, put

GRID, POINTS, MOST = "grid_search", 9, 32
NO_EFFECT = "left out: {} changes nothing here, as SLM-Lab does not read it either or something else decides"
Again = Callable[[Section], None]


def dimensions(again: Again) -> Callable[[Section, str], None]:
    """Takes over what one key of the block says; `again` converts a file that has another value in it."""

    def search(section: Section, key: str) -> None:
        value = section.get(key)
        for at, body in _entries({key: value}, section.path):
            _dimension(section.conversion, at, body, again)

    return search


def _entries(block: dict[str, Any], at: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """The dimensions of a flat or nested block, with their places."""
    for key, body in block.items():
        if isinstance(body, dict) and "__" not in key:
            yield from _entries(body, (*at, key))
        else:
            yield (*at, key), body


def _dimension(conversion: Conversion, at: KeyPath, body: Any, again: Again) -> None:
    place, kind = _read(at)
    if not kind:
        conversion.remark(at, "left out: it names no distribution, so SLM-Lab's search cannot read it")
        return
    if dotted(at).endswith(f"__{GRID}"):
        conversion.remark(at, "its values are drawn by `choice`, not tried in turn")
    others = _typical(conversion, at)
    there, home = _converted(conversion, others, again), conversion.homes.get(place)
    values = _values(kind, body)
    ends = values and [_converted(conversion, put(others, place, each), again) for each in (values[0], values[-1])]
    if home is not None and all(_moves_only(home, place, there, each) for each in ends or ()):
        _search(conversion, at, [dotted(home)], f"{dotted(home)}__{kind}", body)
    elif values is None:
        conversion.remark(at, f"left out of the search: {kind} gives no values of {dotted(place)} to convert")
    else:
        _tried(conversion, at, values, there, others, again)


def _moves_only(home: KeyPath, place: KeyPath, now: Conversion, other: Conversion) -> bool:
    """Whether another value at a place changes the one setting that has it here, and nothing else."""
    if other.homes.get(place) != home:
        return False
    ours, theirs = _settings(now.native.data), _settings(other.native.data)
    return all(ours.get(name) == theirs.get(name) for name in {*ours, *theirs} - {dotted(home)})


def _read(at: KeyPath) -> tuple[KeyPath, str]:
    """The place that a dimension varies, and its distribution."""
    path, _, kind = dotted(at[1:]).partition("__")
    place = tuple(part for part in path.split(".") if part != "0")
    return place, "choice" if kind == GRID else ALIASES.get(kind, kind)


def _typical(conversion: Conversion, but: KeyPath) -> Any:
    """Their data with a value of every other dimension in place, as it is when this one varies."""
    data = {key: value for key, value in conversion.theirs.data.items() if key != "search"}
    for at, body in _entries(conversion.theirs.data["search"], ("search",)):
        place, kind = _read(at)
        values = _values(kind, body) if at != but else None
        data = put(data, place, values[0]) if values else data
    return data


def _converted(conversion: Conversion, data: Any, again: Again) -> Conversion:
    other = Conversion(replace(conversion.theirs, data=data), conversion.lab, conversion.table, conversion.given)
    again(Section(other, ()))
    return other


def _tried(conversion: Conversion, at: KeyPath, values: list[Any], now: Conversion, others: Any, again: Again) -> None:
    """A dimension whose values are others here: each of them is converted, and what differs from now is what varies."""
    place, kind = _read(at)
    settings = []
    for value in values:
        other = _converted(conversion, put(others, place, value), again)
        if len(other.refusals) > len(now.refusals) or len(other.losses) > len(now.losses):
            conversion.remark(at, f"left out of the search: {dotted(place)} = {value} has no counterpart")
            return
        settings.append(other.native.data)
    varied = _varied([_settings(each) for each in (now.native.data, *settings)])
    if not varied:
        conversion.remark(at, NO_EFFECT.format(dotted(place)))
        return
    said = "drawn by `choice`" if kind == "choice" else f"drawn by `choice` from {len(values)} values of its {kind}"
    drawn = [{name: lookup(each, tuple(name.split("."))) for name in varied} for each in settings]
    key = varied[0] if len(varied) == 1 else "_".join(map(str, place))
    choices = [each[key] for each in drawn] if len(varied) == 1 else drawn
    if _search(conversion, at, varied, f"{key}__choice", choices):
        conversion.remark(at, f"becomes {' and '.join(varied)}, {said}")


def _search(conversion: Conversion, at: KeyPath, varied: list[str], key: str, body: Any) -> bool:
    """Search settings by a dimension, unless another one varies one of them already; whether it was taken."""
    taken = {
        name for each in lookup(conversion.native.data, ("search",)) or {} for name in _varied_by(conversion, each)
    }
    twice = sorted(taken & set(varied))
    if twice:
        conversion.remark(at, f"left out of the search: another dimension varies {' and '.join(twice)}")
        return False
    conversion.set(("search", key), body, at)
    return True


def _varied_by(conversion: Conversion, key: str) -> list[str]:
    """The settings that a dimension of ours varies: the one that it is called by, or those of its choices."""
    choices = conversion.native.data["search"][key]
    joint = isinstance(choices, list) and all(isinstance(each, dict) for each in choices) and "." not in key
    return list(choices[0]) if joint else [key.partition("__")[0]]


def _values(kind: str, body: Any) -> list[Any] | None:
    """The values of a distribution, or some that are spread over it; None of one that cannot be read."""
    parameters = body if isinstance(body, list) else [body]
    if kind not in ("choice", "uniform", "loguniform") and "int" not in kind and not kind.startswith("q"):
        return None
    if fault_in(kind, parameters) is not None:
        return None
    distribution = Distribution(kind, tuple(parameters))
    listed = distribution.listed()
    if listed is not None and len(listed) <= MOST:
        return listed
    low, high = parameters[:2]
    shares = [point / (POINTS - 1) for point in range(POINTS)]
    if "log" in kind:
        spread = [math.exp(math.log(low) + share * (math.log(high) - math.log(low))) for share in shares]
    else:
        spread = [low + share * (high - low) for share in shares]
    last = high - 1 if "randint" in kind else high
    tidy = [distribution.rounded(min(float(f"{each:.4g}"), last)) for each in spread]
    return list(dict.fromkeys(int(each) if "int" in kind else each for each in tidy))


def _varied(settings: list[dict[str, Any]]) -> list[str]:
    """The settings that differ from the first; of a schedule that is now a number and now a line, the whole.

    None where all the others are alike, for then nothing varies.
    """
    now, *others = settings
    if all(each == others[0] for each in others):
        return []
    names = sorted({name for each in settings for name in each})
    varied = [name for name in names if any(each.get(name) != now.get(name) for each in others)]
    return [name for name in varied if not any(name.startswith(f"{each}.") for each in varied)]


def _settings(data: Any, path: KeyPath = ()) -> dict[str, Any]:
    """Native settings by dotted path; a list is one value."""
    if not isinstance(data, dict):
        return {dotted(path): data}
    return {name: value for key, each in data.items() for name, value in _settings(each, (*path, key)).items()}
