from __future__ import annotations

import pytest

from operant.errors import SpecError
from operant.spec.reading.document import Document, Source
from operant.spec.reading.toml import read_toml

TEXT = '''\
# a comment = 1
name = "x # y"   # z
[env]
name = 'C'
"max frame" = 1_000
[agent.net]
hidden = [64,  # first
  128]
optimizer.lr = 1e-3
schedule = {start = 1, end = 0.5}
text = """
[not.a.table]
key = 1
"""
[[many]]
a = 1
[[many]]
a = {b = [2]}
[many.deep]
c = 3
'''


def read(text: str) -> Document:
    return read_toml(Source(text, "a.toml"))


def word_at(document: Document, *path: str | int, key: bool = False) -> str:
    mark = document.marks[path]
    span = mark.key if key else mark.value
    assert span is not None
    return f"{span.line}:{span.text[span.column - 1 : span.column - 1 + span.width]}"


def test_values_are_toml_s() -> None:
    data = read(TEXT).data
    assert data["env"] == {"name": "C", "max frame": 1000}
    assert data["many"] == [{"a": 1}, {"a": {"b": [2]}, "deep": {"c": 3}}]


def test_everything_is_marked_where_it_stands() -> None:
    document = read(TEXT)
    assert word_at(document, "name") == '2:"x # y"'
    assert word_at(document, "env", key=True) == "3:env"
    assert word_at(document, "env", "max frame", key=True) == '5:"max frame"'
    assert word_at(document, "env", "max frame") == "5:1_000"
    assert word_at(document, "agent", "net", "hidden", 1) == "8:128"
    assert word_at(document, "agent", "net", "optimizer", key=True) == "9:optimizer.lr"
    assert word_at(document, "agent", "net", "optimizer", "lr") == "9:1e-3"
    assert word_at(document, "agent", "net", "schedule", "end") == "10:0.5"
    assert word_at(document, "many", 1, "a", "b", 0) == "18:2"
    assert word_at(document, "many", 1, "deep", "c") == "20:3"


def test_every_leaf_has_a_mark() -> None:
    from operant.spec.reading.document import leaves

    document = read(TEXT)
    assert [path for path, _ in leaves(document.data) if path not in document.marks] == []


def test_windows_line_ends_change_nothing() -> None:
    document = read(TEXT.replace("\n", "\r\n"))
    assert word_at(document, "env", "name") == "4:'C'"
    assert document.data == read(TEXT).data


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_an_empty_text_is_none(text: str) -> None:
    assert read(text).data is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 1\na = 2\n", "a.toml:2:1: this key is given twice | keep one of them"),
        ("[env]\nx = 1\n[env]\n", "a.toml:3:2: this key is given twice | keep one of them"),
        ("a = null", "a.toml:1:5: TOML cannot read this: Invalid value | TOML has no null; leave the line out"),
        ("a = ${x}", 'a.toml:1:5: TOML cannot read this: Invalid value | write "${...}" in quotes'),
        (
            "a: 1",
            "a.toml:1:2: TOML cannot read this: Expected '=' after a key in a key/value pair | TOML writes key = value",
        ),
        ('a = "x', "a.toml:1:6: TOML cannot read this: Unterminated string | close the quote"),
    ],
)
def test_broken_toml_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(text)
    head, _, caret = str(caught.value).splitlines()
    assert f"{head} | {caret.split('^')[-1].strip()}" == told
