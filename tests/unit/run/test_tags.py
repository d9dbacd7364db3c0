from __future__ import annotations

import json
from pathlib import Path

import pytest

from operant.errors import UsageError
from operant.run.tags import Tags, change_tags, read_tags, set_archived


def test_tags_are_added_once_and_removed_and_survive_an_archive(tmp_path: Path) -> None:
    assert read_tags(tmp_path) == Tags()
    change_tags(tmp_path, ["b", "a", "b"])
    set_archived(tmp_path, True)
    assert change_tags(tmp_path, ["c"], ["a", "never"]) == Tags(("b", "c"), True)
    assert json.loads((tmp_path / "tags.json").read_text()) == {"tags": ["b", "c"], "archived": True}


@pytest.mark.parametrize("word", ["", "two words", "-a", "x" * 65, "a\nb", "<b>"])
def test_what_cannot_be_a_tag_changes_nothing(tmp_path: Path, word: str) -> None:
    with pytest.raises(UsageError, match="cannot be a tag"):
        change_tags(tmp_path, ["good", word])
    assert read_tags(tmp_path) == Tags()


@pytest.mark.parametrize("text", ["", "[]", '{"tags": 3}', "null", "{"])
def test_a_damaged_file_reads_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "tags.json").write_text(text)
    assert read_tags(tmp_path) == Tags()
