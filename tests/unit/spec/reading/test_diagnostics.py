from __future__ import annotations

from operant.errors import SpecError
from operant.spec.reading.diagnostics import Diagnostic, did_you_mean, nearest, report, shown
from operant.spec.reading.document import Source


def test_a_report_names_place_cause_and_next_step() -> None:
    source = Source("env:\n  nam: X\n", "a.yaml")
    error = report([Diagnostic("env.nam is unknown", source.span(7, 10), "did you mean name?", "operant help env")])
    assert isinstance(error, SpecError)
    assert (error.place, error.remedy, error.exit_code) == ("a.yaml:2:3", "operant help env", 2)
    assert error.cause == "env.nam is unknown\n  2 |   nam: X\n    |   ^^^ did you mean name?"


def test_a_problem_without_a_place_is_told_of_the_file() -> None:
    assert str(report([Diagnostic("it is empty", None, "fill it")], "a.yaml")) == "a.yaml: it is empty\n  fill it"


def test_tabs_and_wide_characters_keep_the_caret_in_place() -> None:
    source = Source("\t日本: x", "a.yaml")
    assert str(report([Diagnostic("no", source.span(5, 6))])).splitlines()[1:] == ["  1 |  日本: x", "    |        ^"]


def test_control_characters_never_reach_the_terminal() -> None:
    source = Source("a: \x1b[31mred", "a.yaml")
    assert "\x1b" not in str(report([Diagnostic("no", source.span(3, 4))]))


def test_a_long_line_is_cut_around_the_place() -> None:
    source = Source("x" * 5000 + "HERE" + "y" * 5000, "a.json")
    line, caret = str(report([Diagnostic("no", source.span(5000, 5004))])).splitlines()[1:]
    start = caret.index("^")
    assert len(line) < 120
    assert line[start : start + 4] == "HERE"
    assert caret.count("^") == 4


def test_the_same_remedy_is_told_once() -> None:
    source = Source("a\nb\nc\n", "a.yaml")
    problems = [Diagnostic(f"no {n}", source.span(2 * n, 2 * n + 1), "", "help") for n in range(2)]
    last = Diagnostic("no 2", source.span(4, 5), "", "other")
    told = str(report([*problems, last]))
    assert told.count("try: help") == 1
    assert told.index("no 1") < told.index("try: help") < told.index("no 2") < told.index("try: other")


def test_nearest_ignores_case_and_may_find_nothing() -> None:
    assert nearest("GAMA", ["gamma", "lam"]) == "gamma"
    assert nearest("xyzzy", ["gamma", "lam"]) is None
    assert did_you_mean("gama", ["gamma"]) == "did you mean gamma?"
    assert did_you_mean("xyzzy", ["gamma"]) == ""


def test_values_are_shown_as_a_file_spells_them_and_cut_short() -> None:
    assert [shown(each) for each in ("a", None, True, 3, [1, "x"])] == ['"a"', "null", "true", "3", '[1, "x"]']
    assert shown("x" * 100) == '"' + "x" * 36 + "..."
