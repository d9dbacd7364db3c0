from __future__ import annotations

import pytest

from operant.spec.builtin import builtin_files, builtin_names, builtin_source, listed
from operant.spec.load import load


def test_a_file_of_one_spec_is_listed_by_its_stem_or_name() -> None:
    assert listed("ppo_pole", "# Balances a pole.\n# More.\nenv: {}\n") == [("ppo_pole", "Balances a pole.")]
    assert listed("ppo_pole", "name: pole\nenv: {}\n") == [("pole", "")]


def test_a_line_for_editors_is_no_description() -> None:
    text = "# yaml-language-server: $schema=x.json\n\n# Balances a pole.\nenv: {}\n"
    assert listed("ppo_pole", text) == [("ppo_pole", "Balances a pole.")]


def test_named_specs_are_listed_with_the_comment_above_each() -> None:
    text = "# About the file.\n\n# First.\n# More.\none:\n  env: {}\n_shared: &x {}\ntwo:\n  env: {}\n"
    assert listed("many", text) == [("one", "First."), ("two", "")]


def test_shipped_names_are_unique_and_described() -> None:
    rows = builtin_names()
    names = [name for name, _, _ in rows]
    assert len(names) == len(set(names)) >= 1
    assert [name for name, about, _ in rows if not about] == []
    assert {file for _, _, file in rows} == {each.name for each in builtin_files()}


@pytest.mark.parametrize("name", [name for name, _, _ in builtin_names()])
def test_every_shipped_spec_loads(name: str) -> None:
    assert load(name).spec.name == name


def test_an_unknown_name_has_no_source() -> None:
    assert builtin_source("no_such_spec") is None
