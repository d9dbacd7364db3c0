from __future__ import annotations

import pytest

from operant.errors import SpecError
from operant.spec.reading.document import Source
from operant.spec.reading.yaml import read_yaml


def read(text: str) -> object:
    return read_yaml(Source(text, "a.yaml")).data


def complaint(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4e6", 4_000_000.0),
        ("1e-4", 1e-4),
        ("5.", 5.0),
        ("1_000", 1000),
        ("012", 12),
        ("0o14", 12),
        ("0x1F", 31),
        ("-7", -7),
        ("yes", "yes"),
        ("on", "on"),
        ("True", True),
        ("false", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("'3'", "3"),
        ("!!str 3", "3"),
        (".inf", float("inf")),
        ("${x}", "${x}"),
        ("[1, {b: 2}]", [1, {"b": 2}]),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert read(f"a: {text}") == {"a": value}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_document_is_none(text: str) -> None:
    assert read(text) is None


def test_keys_and_values_are_marked() -> None:
    marks = read_yaml(Source("env:\n  name: X\n  sizes: [1, 22]\n", "a.yaml")).marks
    spans = {path: [(s.line, s.column, s.width) for s in (m.key, m.value) if s] for path, m in marks.items()}
    assert spans[("env", "name")] == [(2, 3, 4), (2, 9, 1)]
    assert spans[("env", "sizes", 1)] == [(3, 14, 2)]
    assert spans[("env",)][0] == (1, 1, 3)


def test_keys_are_text_whatever_they_look_like() -> None:
    assert read("1: a\ntrue: b\n~: c\n") == {"1": "a", "true": "b", "~": "c"}


def test_a_merge_gives_the_keys_that_are_not_given() -> None:
    text = "_base: &base {a: 1, b: 2}\none:\n  <<: *base\n  b: 3\ntwo:\n  <<: [{c: 4}, *base]\n"
    data = read(text)
    assert isinstance(data, dict)
    assert data["one"] == {"a": 1, "b": 3}
    assert data["two"] == {"c": 4, "a": 1, "b": 2}


def test_duplicate_keys_are_all_told() -> None:
    assert complaint("env: 1\nmeta: {a: 1, a: 2}\nenv: 3\n") == (
        "a.yaml:2:14: a is given twice\n"
        "  2 | meta: {a: 1, a: 2}\n"
        "    |              ^ first given on line 2; keep one of them\n"
        "a.yaml:3:1: env is given twice\n"
        "  3 | env: 3\n"
        "    | ^^^ first given on line 1; keep one of them"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\n\tb: 2", "a.yaml:2:1: a tab cannot indent YAML\n  2 |  b: 2\n    | ^ use spaces"),
        (
            "a: b: c",
            "a.yaml:1:5: a second ': ' where a value should end\n"
            "  1 | a: b: c\n    |     ^ check the indentation, or quote the text",
        ),
        ("a: @b", "a.yaml:1:4: a bare value cannot start with @\n  1 | a: @b\n    |    ^ put the text in quotes"),
        (
            "a: *b",
            "a.yaml:1:4: *b stands for an anchor &b, which is not defined\n"
            "  1 | a: *b\n    |    ^ quote the text if it is no alias",
        ),
        ("a: 'x", "a.yaml:1:6: the text ends inside a quoted value\n  1 | a: 'x\n    |      ^ close the quote"),
        ("a: {b: 1", "a.yaml:1:9: the text ends inside a bracket or brace\n  1 | a: {b: 1\n    |         ^ close it"),
        (
            " a: 1\nb: 2",
            "a.yaml:2:1: this line is indented less than the first one\n"
            "  2 | b: 2\n    | ^ align it with the first line",
        ),
        (
            "a: 1\n---\nb: 2",
            "a.yaml:2:1: a second YAML document starts here\n"
            "  2 | ---\n    | ^ keep all specs in one document, each under its name",
        ),
        ("a: \x00", "a.yaml:1:4: a character that YAML does not allow\n  1 | a: ?\n    |    ^ remove it"),
        (
            "a: !private 3",
            "a.yaml:1:4: 3 cannot be read as !private\n  1 | a: !private 3\n    |    ^^^^^^^^^^ leave the tag out",
        ),
        ("a: !!int x", "a.yaml:1:4: x cannot be read as !!int\n  1 | a: !!int x\n    |    ^^^^^^^ leave the tag out"),
        ("? [a]\n: 1", "a.yaml:1:3: a key must be plain text\n  1 | ? [a]\n    |   ^^^"),
        ("a:\n  <<: 3", "a.yaml:2:7: << takes a mapping, or a list of mappings\n  2 |   <<: 3\n    |       ^"),
        (
            "a: [1, ${b}]",
            "a.yaml:1:9: YAML cannot read this: expected ',' or ']', but got '{'\n"
            '  1 | a: [1, ${b}]\n    |         ^ write "${...}" in quotes inside brackets',
        ),
    ],
)
def test_broken_yaml_is_told_in_plain_words(text: str, told: str) -> None:
    assert complaint(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "x: &a [*a]",
        "x: &a {y: *a}",
        "a: &a [1, 1]\n" + "".join(f"b{n}: &a [{', '.join(['*a'] * 9)}]\n" for n in range(9)),
    ],
)
def test_aliases_cannot_make_a_document_endless(text: str) -> None:
    assert "aliases make the document endless or too large" in complaint(text)


def test_deep_nesting_is_refused() -> None:
    assert "nested too deeply" in complaint("a: " + "[" * 600)
