from __future__ import annotations

from pathlib import Path

import pytest

from operant.errors import SpecError
from operant.spec.load import load
from tests.unit.spec.dialects.slm.conftest import FILES


def test_last_commas_of_slm_lab_are_forgiven() -> None:
    text = (FILES / "older.json").read_text().replace('"gpu": false\n', '"gpu": false,\n')
    Path("slm.json").write_text(text)
    assert load("slm.json").spec == load(str(FILES / "older.json")).spec


@pytest.mark.parametrize("text", ['{"env": {"num_envs": 4,}}', '{"agent": [{"name": "a, ]", }]'])
def test_those_of_others_are_not(text: str) -> None:
    Path("spec.json").write_text(text)
    with pytest.raises(SpecError, match=r"a comma before the end|a bracket or brace is still open"):
        load("spec.json")
