"""Values as bytes: what goes comes back the same, and no bytes make anything but a plain value or a refusal."""

from __future__ import annotations

import collections
import enum
import math
import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.envs.text.code_wire import MOST_DEPTH, End, Malformed, Reader, encoded, receive, send


def there_and_back(value: Any) -> Any:
    return Reader(encoded(value, lambda thing: 7), lambda number: f"handle {number}").value()


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**200), max_value=2**200)
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.binary()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.sets(st.integers() | st.text())
        | st.frozensets(st.text())
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner)
    ),
)


@given(VALUES)
def test_a_value_comes_back_the_same_and_of_the_same_types(value: Any) -> None:
    assert repr_of(there_and_back(value)) == repr_of(value)


def repr_of(value: Any) -> Any:
    """Sets in no order, all else as it is written, so that 1, 1.0 and True differ."""
    if isinstance(value, (set, frozenset)):
        return type(value), {repr(item) for item in value}
    if isinstance(value, dict):
        return [(repr(key), repr_of(item)) for key, item in value.items()]
    return [type(value), *map(repr_of, value)] if isinstance(value, (list, tuple)) else repr(value)


def test_special_values() -> None:
    assert math.isnan(there_and_back(math.nan))
    assert there_and_back([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert math.copysign(1, there_and_back(-0.0)) == -1
    assert there_and_back("\ud800") == "\ud800"
    assert there_and_back(range(3, -9, -2)) == range(3, -9, -2)
    assert there_and_back((int, list, ...)) == (int, list, ...)
    assert there_and_back(10**5000) == 10**5000


def test_subclasses_travel_as_what_they_are_made_of() -> None:
    point = collections.namedtuple("point", "x y")
    for value, plain in (
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (point(1, 2), (1, 2)),
        (enum.IntEnum("E", "one").one, 1),
        (bytearray(b"x"), b"x"),
    ):
        back = there_and_back(value)
        assert (type(back), back) == (type(plain), plain)


def test_everything_else_is_a_handle() -> None:
    assert there_and_back([print, object()]) == ["handle 7", "handle 7"]


@given(st.binary(max_size=60) | st.text(alphabet="NTFEifcsbrhyltSZd0123456789:- xp.", max_size=60).map(str.encode))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    with suppress(Malformed):
        Reader(data, lambda number: None).value()


@pytest.mark.parametrize(
    "data",
    [b"", b"N", b"i3:1", b"l9:", b"S1:l0:", b"d1:N0:", b"i1:g", b"f2:zz", b"q0:", b"N0:N0:", b"y4:exec", b"i-1:"],
)
def test_bytes_that_are_no_value_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        Reader(data, lambda number: None).value()


def test_depth_has_a_limit_on_both_sides() -> None:
    with pytest.raises(Malformed):
        Reader(b"l1:" * (MOST_DEPTH + 2) + b"N0:", lambda number: None).value()
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(Malformed):
        encoded(cycle, lambda thing: 0)


def test_messages_over_a_pipe() -> None:
    ours, theirs = os.pipe()
    send(theirs, b"one")
    send(theirs, b"")
    os.write(theirs, b"\xff\xff\xff\xff")
    assert (receive(ours), receive(ours)) == (b"one", b"")
    with pytest.raises(Malformed):
        receive(ours)
    os.close(theirs)
    with pytest.raises(End):
        receive(ours)
    os.close(ours)
