"""Texts that are no specs are refused at their place, in time that grows with their length and not with its square."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from operant.errors import OperantError
from operant.spec.dialects.hackmatrix import read_flags
from operant.spec.load import load, load_all
from operant.spec.overrides import parse
from operant.spec.reading.document import Source
from operant.spec.reading.json import read_json
from operant.spec.reading.limits import MAX_BYTES, MAX_DEPTH, MAX_NODES
from operant.spec.reading.toml import read_toml
from operant.spec.reading.yaml import read_yaml

READERS = {"yaml": read_yaml, "json": read_json, "toml": read_toml}
DEEP = MAX_DEPTH + 1
BILLION_LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MANY_MERGES = (
    "b: &b {" + ", ".join(f"k{i}: 1" for i in range(3000)) + "}\nc:\n  <<: [" + ", ".join(["*b"] * 3000) + "]\n"
)


def refusal(read: Callable[[], object]) -> str:
    """What a person is told; generous in time, so that only a blow-up fails on a loaded machine."""
    begun = time.process_time()
    with pytest.raises(OperantError) as caught:
        read()
    assert time.process_time() - begun < 10
    told = str(caught.value)
    assert len(told.encode()) < 30_000
    return told


def load_text(folder: Path, text: str, suffix: str = ".yaml", *overrides: str) -> object:
    path = folder / f"a{suffix}"
    path.write_text(text)
    return load_all(str(path), None, overrides)


@pytest.mark.parametrize(
    ("kind", "text", "place"),
    [
        ("yaml", "a: " + "[" * 2000, "a:1:104"),
        ("yaml", "[" * 500_000, "a:1:102"),
        ("yaml", "{" * 500_000, "a:1:"),
        ("yaml", "- " * 500_000, "a:1:"),
        ("yaml", "".join(" " * i + "k:\n" for i in range(DEEP + 9)), "a:10"),
        ("yaml", "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 500)), "a:"),
        ("json", "[" * 900_000, "a:1:101"),
        ("json", '{"a":' * 100_000, "a:1:501"),
        ("toml", "a = " + "[" * 500_000, "a:1:105"),
        ("toml", "a." * 300_000 + "b = 1", "a:1:200"),
        ("toml", "[" + "a." * 300_000 + "b]", "a:1:201"),
        ("toml", "x = " + "{a.b.c = " * 60 + "1" + "}" * 60, "a:1:1"),
    ],
)
def test_a_level_too_many_is_pointed_at(kind: str, text: str, place: str) -> None:
    told = refusal(lambda: READERS[kind](Source(text, "a")))
    assert told.startswith(place)
    assert "nested too deeply to be a spec: more than 100 levels" in told


def test_the_deepest_text_that_is_taken_is_taken_by_all() -> None:
    inside = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    for kind, text in (("yaml", f"a: {inside}"), ("json", f'{{"a": {inside}}}'), ("toml", f"a = {inside}")):
        assert list(READERS[kind](Source(text, "a")).data) == ["a"]


@pytest.mark.parametrize("text", ["a=" + "[" * 2000, "a=" + "[" * 60_000 + "]" * 60_000, ".".join("a" * 50_000) + "=1"])
def test_an_override_too_deep_is_refused(text: str) -> None:
    assert "nested too deeply" in refusal(lambda: parse(text))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("yaml", "a: [" + "1," * 30_000 + "]"),
        ("yaml", "\n".join(f"k{i}: 1" for i in range(25_000))),
        ("json", "[" + "1," * 30_000 + "1]"),
        ("toml", "a = [" + "1," * 30_000 + "]"),
        ("yaml", BILLION_LAUGHS),
        ("yaml", MANY_MERGES),
    ],
    ids=range(6),
)
def test_more_values_than_any_spec_has_are_refused(kind: str, text: str) -> None:
    told = refusal(lambda: READERS[kind](Source(text, "a")))
    assert f"more than {MAX_NODES:,} values" in told or "aliases make the document endless or too large" in told


@pytest.mark.parametrize("kind", ["yaml", "json", "toml"])
@pytest.mark.parametrize("digits", [101, 5000, 900_000])
def test_a_number_too_long_for_any_setting_is_refused(kind: str, digits: int) -> None:
    text = {"yaml": "a: {}", "json": '{{"a": {}}}', "toml": "a = {}"}[kind].format("9" * digits)
    told = refusal(lambda: READERS[kind](Source(text, "a")))
    assert f"a whole number of {digits:,} digits" in told or "of more than 100 digits" in told


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("json", '{"a": "\\ud800"}', "half of a surrogate pair"),
        ("json", '{"a": {"\\udc00": {}}}', "half of a surrogate pair"),
        ("json", '{"a": "\\u0000"}', "a NUL character"),
        ("yaml", 'a: "\\0"', "a NUL character"),
        ("yaml", 'a: "\\ud800"', "half of a surrogate pair"),
        ("toml", 'a = "\\u0000"', "a NUL character"),
        ("yaml", "a: \0", "a character that YAML does not allow"),
        ("yaml", "%YAML 1.9\n---\na: 1", "YAML 1.9 is not known here"),
        ("yaml", "a: 1\n%YAML 9.9\n", "YAML 9.9 is not known here"),
    ],
)
def test_what_is_no_text_is_refused(kind: str, text: str, told: str) -> None:
    assert told in refusal(lambda: READERS[kind](Source(text, "a")))


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", "env:\n" + "\n".join(f"  k{i}: {i}" for i in range(2000))),
        (".yaml", "agent:\n  algorithm:\n" + "\n".join(f"    k{i}: {i}" for i in range(2000))),
        (".yaml", "\n".join(f"s{i}: 3" for i in range(2000))),
        (".yaml", "search:\n" + "\n".join(f"  env.kwargs.k{i}__uniform: [0, 1]" for i in range(2000))),
        (".yaml", "search:\n  env.num_envs__choice: [" + "4, " * 5000 + "]"),
        (".yaml", "env:\n  kwargs:\n" + "\n".join(f"    k{i}: ${{k{i}}}" for i in range(2000))),
        (".yaml", "env:\n  name: " + "x" * 900_000),
        (".yaml", "x" * 900_000 + ": 1"),
        (".json", '{"env": {' + ",".join(f'"k{i}": {i}' for i in range(9000)) + "}}"),
        (".json", '\\"' * 400_000),
        (".toml", "[env]\n" + "\n".join(f"k{i} = {i}" for i in range(9000))),
        (".toml", '\\""" x\n' * 100_000),
        (".toml", '\\"' * 400_000),
    ],
    ids=range(13),
)
def test_thousands_of_faults_are_told_in_few_words_and_soon(suffix: str, text: str, tmp_path: Path) -> None:
    refusal(lambda: load_text(tmp_path, text, suffix))


def test_a_value_that_fills_many_places_cannot_grow_without_end(tmp_path: Path) -> None:
    many = "env:\n  kwargs:\n" + "\n".join(f"    k{i}: ${{x}}" for i in range(1000))
    refusal(lambda: load_text(tmp_path, many, ".yaml", f"x=[{'1,' * 5000}]"))
    refusal(lambda: load_text(tmp_path, "env:\n  kwargs: {a: '" + "${x}" * 1000 + "'}", ".yaml", "x=" + "y" * 50_000))


def test_a_file_too_large_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert f"the file has {MAX_BYTES + 1:,} bytes, and a spec at most {MAX_BYTES:,}" in refusal(lambda: load(str(path)))


@pytest.mark.parametrize(
    "flags",
    ["--num-layers 1000000000", "x" * 1_000_000, "--lr inf", "--seed " + "9" * 5000, "--num-envs=1e400"],
)
def test_flags_that_could_not_be_meant_are_refused(flags: str) -> None:
    assert refusal(lambda: read_flags(flags, load("ppo_hackmatrix").spec)).startswith("--flags: ")


def test_a_merge_of_a_merge_gives_the_keys_of_both() -> None:
    text = "_a: &a {x: 1, y: 1}\n_b: &b {<<: *a, y: 2}\nc: {<<: *b, z: 3}\n"
    data = read_yaml(Source(text, "a")).data
    assert data["c"] == {"z": 3, "y": 2, "x": 1}
