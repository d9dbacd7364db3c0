from __future__ import annotations

from operant.spec.reading.document import Document, Mark, Source, leaves, lookup, put

SOURCE = Source("env:\n  name: X\n  sizes: [1,\n    2]\n", "a.yaml")
ENV = Mark(SOURCE.span(7, 14), SOURCE.span(0, 3))
NAME = Mark(SOURCE.span(13, 14), SOURCE.span(7, 11))


def document() -> Document:
    return Document(SOURCE, {"env": {"name": "X"}}, {("env",): ENV, ("env", "name"): NAME})


def test_spans_count_lines_and_columns_from_one() -> None:
    span = SOURCE.span(13, 14)
    assert (span.line, span.column, span.width, span.text, span.place) == (2, 9, 1, "  name: X", "a.yaml:2:9")


def test_a_span_ends_with_its_first_line() -> None:
    assert SOURCE.span(24, 34).width == len("[1,")


def test_an_empty_span_still_shows_one_column() -> None:
    assert SOURCE.span(4, 4).width == 1


def test_carriage_returns_are_no_part_of_a_line() -> None:
    assert Source("a: 1\r\nb: 2\r\n", "a.yaml").span(6, 7).text == "b: 2"


def test_what_was_never_written_is_marked_by_its_nearest_ancestor() -> None:
    assert document().mark_of(("env", "name")) == (("env", "name"), NAME)
    assert document().mark_of(("env", "other", "deep")) == (("env",), ENV)
    assert document().mark_of(("meta", "seed")) is None


def test_a_part_is_a_document_of_its_own() -> None:
    part = document().parts()["env"]
    assert part.data == {"name": "X"}
    assert part.marks == {(): ENV, ("name",): NAME}


def test_placing_replaces_data_and_marks_and_leaves_the_original_alone() -> None:
    other_source = Source("1")
    other = Document(other_source, {"a": 1}, {(): Mark(other_source.span(0, 1))})
    before = document()
    after = before.placed(("env",), other)
    assert after.data == {"env": {"a": 1}}
    assert after.marks == {("env",): Mark(other_source.span(0, 1))}
    assert before == document()


def test_put_makes_the_mappings_on_the_way_and_changes_nothing_in_place() -> None:
    data = {"a": [1, {"b": 2}], "c": 3}
    assert put(data, ("a", 1, "b"), 9) == {"a": [1, {"b": 9}], "c": 3}
    assert put(data, ("x", "y"), 9) == {**data, "x": {"y": 9}}
    assert put(data, ("c", "d"), 9) == {**data, "c": {"d": 9}}
    assert data == {"a": [1, {"b": 2}], "c": 3}


def test_lookup_finds_what_is_there_and_none_elsewhere() -> None:
    data = {"a": [1, {"b": 2}]}
    assert lookup(data, ("a", 1, "b")) == 2
    assert [lookup(data, path) for path in [("x",), ("a", 7), ("a", "b"), ("a", 0, "b")]] == [None] * 4


def test_leaves_are_all_scalars_with_their_paths() -> None:
    assert dict(leaves({"a": [1, {"b": None}], "c": "x"})) == {("a", 0): 1, ("a", 1, "b"): None, ("c",): "x"}
