"""The small commands: specs, schema, doctor."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operant.cli.doctor import missing_extras

if TYPE_CHECKING:
    from tests.cli.conftest import Operant, Toy

METADATA = """\
Metadata-Version: 2.4
Name: operant
Version: 0.1.0
Provides-Extra: whole
Provides-Extra: part
Provides-Extra: nested
Requires-Dist: numpy
Requires-Dist: pytest; extra == 'whole'
Requires-Dist: no-such-package>=1; extra == 'part'
Requires-Dist: elsewhere-only; sys_platform == 'amiga' and extra == 'part'
Requires-Dist: operant[part]; extra == 'nested'
"""


def test_specs_lists_the_built_in_ones_and_prints_one_to_start_from(operant: Operant, here: Path) -> None:
    assert "ppo_cartpole" in operant("specs").out
    names = [each["name"] for each in operant("specs", "--json").document["specs"]]
    assert "ppo_cartpole" in names
    (here / "mine.yaml").write_text(operant("specs", "ppo_cartpole").out)
    assert operant("check", "mine.yaml", "ppo_cartpole", "--no-estimate").code == 0


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_schema_is_printed(operant: Operant, flags: tuple[str, ...]) -> None:
    assert "Spec" in operant("schema", *flags).document["$defs"]


def test_schema_is_written_to_a_new_file(operant: Operant, here: Path) -> None:
    assert operant("schema", "--out", "operant.schema.json").out == "operant.schema.json\n"
    assert "Spec" in json.loads((here / "operant.schema.json").read_text())["$defs"]


def test_doctor_reports_machine_and_packages(operant: Operant, toy: Toy) -> None:
    words = operant("doctor").out
    for word in ("cpu", "gpu", "disk", "has      torch", "speed    ppo_cartpole trains at 1k frames/s"):
        assert word in words
    facts = operant("doctor", "--no-speed", "--json").document
    assert facts["packages"]["numpy"]
    assert facts["speed"] is None
    assert facts["usable_cores"] >= 1


def test_doctor_names_what_an_extra_lacks(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = here / "operant-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA)
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    assert missing_extras() == {"whole": [], "part": ["no-such-package"], "nested": ["no-such-package"]}
