from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.errors import SpecError
from operant.spec.reading.document import Document, Source, leaves, lookup
from operant.spec.reading.json import read_json

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def read(text: str) -> Document:
    return read_json(Source(text, "a.json"))


@given(VALUES, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_every_value_is_read_and_marked_where_it_stands(
    value: object, indent: int | str | None, ascii_only: bool
) -> None:
    document = read(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert document.data == value
    for path, leaf in leaves(value):
        if "\n" not in document.source.text:
            span = document.marks[path].value
            assert json.loads(span.text[span.column - 1 : span.column - 1 + span.width]) == leaf
        assert lookup(document.data, path) == leaf


def test_keys_are_marked() -> None:
    document = read('{\n\t"env": {"name": "X", "n": [1, 22]}\n}')
    key = document.marks[("env", "name")].key
    assert key is not None
    assert (key.line, key.column, key.width) == (2, 10, 6)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_none(text: str) -> None:
    assert read(text).data is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1,}', "a.json:1:8: a comma before the end | JSON objects end without one: remove it"),
        ("[1,\n]", "a.json:1:3: a comma before the end | JSON lists end without one: remove it"),
        ("{'a': 1}", 'a.json:1:2: a single quote | JSON text stands in double quotes: "..."'),
        ('{"a": 1 "b": 2}', "a.json:1:9: a comma or a closing bracket is expected here | "),
        ('{"a" 1}', "a.json:1:6: a colon is expected here | "),
        ("{a: 1}", "a.json:1:2: a key in double quotes is expected here | "),
        ('{"a": True}', "a.json:1:7: this is no JSON value | JSON writes true"),
        ('{"a": None}', "a.json:1:7: this is no JSON value | JSON writes null"),
        ('{"a": ${x}}', 'a.json:1:7: this is no JSON value | write "${...}" in quotes'),
        ('{"a": 1', "a.json:1:7: the JSON text ends too early | a bracket or brace is still open"),
        ('{"a": "x', "a.json:1:7: this quote is never closed | "),
        ('{"a": "\t"}', "a.json:1:8: a tab or line break inside a quoted text | "),
        ('{"a": "\\q"}', "a.json:1:8: JSON has no such escape | "),
        ('{\n  // note\n  "a": 1}', "a.json:2:3: a comment | JSON has none; YAML and TOML do"),
        ('{"a": 1} x', "a.json:1:10: there is more text after the end of the JSON value | "),
        ('{"a": 1,\n "a": 2}', "a.json:2:2: a is given twice | first given on line 1; keep one of them"),
        (
            "[" * 100_000,
            "a.json:1:101: the text is nested too deeply to be a spec: more than 100 levels | write it flatter",
        ),
    ],
)
def test_broken_json_is_told_in_plain_words(text: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(text)
    head, _, caret = str(caught.value).splitlines()
    assert f"{head} | {caret.split('^')[-1].strip()}" == told
