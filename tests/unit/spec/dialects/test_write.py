from __future__ import annotations

from pathlib import Path

import pytest

from operant.spec.dialects.write import WIDTH, native_yaml
from operant.spec.load import load, load_all

FILES = Path(__file__).parent / "slm" / "files"
FILLED = ["env=Hopper-v5", "max_frame=4e6"]


@pytest.mark.parametrize(
    ("file", "name", "overrides"),
    [
        ("ppo_cartpole.json", "ppo_cartpole", []),
        ("dqn_lunar.json", "ddqn_per_lunar", []),
        ("dqn_lunar.json", "dqn_lunar", []),
        ("dqn_cartpole.yaml", "dqn_rate_decay_cartpole", []),
        ("ppo_continuous.yaml", "ppo_continuous", FILLED),
        ("older.json", "vanilla_dqn_cartpole", []),
    ],
)
def test_the_written_spec_is_the_translated_one(file: str, name: str, overrides: list[str]) -> None:
    loaded = load(str(FILES / file), name, overrides, lossy=True)
    text = native_yaml([loaded], file)
    Path("native.yaml").write_text(text)
    again = load("native.yaml")
    assert again.spec == loaded.spec
    assert not again.translated
    assert all(remark.key in text for remark in loaded.remarks)
    assert max(map(len, text.splitlines())) <= WIDTH + 2


def test_several_specs_share_a_file() -> None:
    specs = load_all(str(FILES / "dqn_lunar.json"), None)
    Path("native.yaml").write_text(native_yaml(specs, "dqn_lunar.json"))
    assert [each.spec.name for each in load_all("native.yaml", None)] == ["ddqn_per_lunar", "dqn_lunar"]
