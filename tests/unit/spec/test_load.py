from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.errors import SpecError, UsageError
from operant.spec import builtin
from operant.spec.load import load, load_all

Complain = Callable[..., str]
TWO = "small:\n  env: {num_envs: 1}\n_shared: &shared {num_envs: 2}\nlarge:\n  env: {<<: *shared, max_frame: 1e6}\n"
SHIPPED = "# yaml-language-server: $schema=operant.schema.json\n# Balances a pole.\nenv:\n  num_envs: 2\n"
SEVERAL = """\
# Swings up.
ppo_acrobot:
  env: {name: Acrobot-v1}

# Climbs.
# Slowly.
ppo_car:
  env: {name: MountainCar-v0}
"""


@pytest.fixture
def _shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of built-in specs instead of those that ship."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "ppo_pole.yaml").write_text(SHIPPED)
    (folder / "ppo_classic.yaml").write_text(SEVERAL)
    monkeypatch.setattr(builtin, "builtin_files", lambda: sorted(folder.iterdir()))


def refusal(target: str, name: str | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        load(target, name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.yaml", "env:\n  num_envs: 2\n"),
        ("a.yml", "env:\n  num_envs: 2\n"),
        ("a.json", '{"$schema": "operant.schema.json", "env": {"num_envs": 2}}'),
        ("a.toml", "[env]\nnum_envs = 2\n"),
        ("a.yaml", "\ufeffenv:\r\n  num_envs: 2\r\n"),
    ],
)
def test_three_formats_say_the_same(file: str, text: str) -> None:
    Path(file).write_bytes(text.encode())
    loaded = load(file)
    assert loaded.spec.env.num_envs == 2
    assert loaded.spec.name == "a"
    assert (loaded.source, loaded.suffix, loaded.path, loaded.builtin) == (
        text.removeprefix("\ufeff"),
        Path(file).suffix,
        Path(file),
        False,
    )


def test_a_resolved_spec_can_be_loaded_again_with_overrides(spec_text: str) -> None:
    Path("demo.yaml").write_text(spec_text)
    spec = load("demo.yaml").spec
    Path("resolved.json").write_text(spec.model_dump_json())
    assert load("resolved.json").spec == spec
    assert load("resolved.json", None, ["env.max_frame=3e5"]).spec.env.max_frame == 300_000


def test_one_of_several_specs_is_chosen_by_name() -> None:
    Path("two.yaml").write_text(TWO)
    assert load("two.yaml", "small").spec.env.num_envs == 1
    assert load("two.yaml:large").spec.env.num_envs == 2
    assert load("two.yaml:large", "large").spec.name == "large"
    assert {each.spec.name: each.spec.env.max_frame for each in load_all("two.yaml", None)} == {
        "small": 100_000,
        "large": 1_000_000,
    }


def test_a_mistake_in_one_spec_does_not_stop_another() -> None:
    Path("two.yaml").write_text("good: {}\nbad: {env: {nam: X}}\nworse: 3\n")
    assert load("two.yaml:good").spec.name == "good"
    assert "env.nam is not a setting of env" in refusal("two.yaml:bad")
    assert "worse = 3 is not a spec" in refusal("two.yaml:worse")


@pytest.mark.parametrize(
    ("target", "name", "told"),
    [
        ("two.yaml", None, "two.yaml: the file holds 2 specs: small, large\n  try: operant check two.yaml small"),
        (
            "two.yaml",
            "smal",
            "two.yaml: no spec is called smal; did you mean small?\n  try: operant check two.yaml small",
        ),
        (
            "two.yaml:x",
            None,
            "two.yaml: no spec is called x; it holds small, large\n  try: operant check two.yaml small",
        ),
        ("two.yaml:small", "large", "two specs are named, small and large\n  try: name one of them"),
        ("tow.yaml", None, "tow.yaml: there is no such file; did you mean two.yaml?\n  try: operant check two.yaml"),
        (
            "ppo_pol",
            None,
            "ppo_pol: no file and no built-in spec has this name; did you mean ppo_pole?\n"
            "  try: operant check ppo_pole",
        ),
        (
            "specs/ppo_pole.yaml",
            None,
            "specs/ppo_pole.yaml: there is no such file; did you mean ppo_pole?\n  try: operant check ppo_pole",
        ),
        ("xyzzy", None, "xyzzy: no file and no built-in spec has this name\n  try: operant specs"),
        ("folder", None, "folder: this is a folder; name a spec file in it\n  try: ls folder"),
        ("notes.txt", None, "notes.txt: a spec file ends in .yaml, .yml, .json, .toml\n  try: rename the file"),
        ("latin.yaml", None, "latin.yaml: the file is not UTF-8 text: byte 4 is 0xe9\n  try: save it as UTF-8"),
        ("", None, "no spec is named\n  try: operant specs"),
    ],
)
@pytest.mark.usefixtures("_shipped")
def test_a_target_that_is_not_there(target: str, name: str | None, told: str) -> None:
    Path("two.yaml").write_text(TWO)
    Path("folder").mkdir()
    Path("notes.txt").write_text("env: {}")
    Path("latin.yaml").write_bytes(b"a: \xe9")
    assert refusal(target, name) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "demo.yaml: the file is empty\n  try: operant help spec"),
        ("# nothing\n", "demo.yaml: the file is empty\n  try: operant help spec"),
        ("{}", "demo.yaml: the file holds no spec\n  try: operant help spec"),
        ("_only: {anchors: 1}", "demo.yaml: the file holds no spec\n  try: operant help spec"),
        (
            "- env\n- agent\n",
            """\
            demo.yaml:1:1: the file holds a list, not a spec or named specs
              1 | - env
                | ^^^^^
              try: operant help spec""",
        ),
        (
            "env:3\n",
            """\
            demo.yaml:1:1: the file holds a single value, not a spec or named specs
              1 | env:3
                | ^^^^^ write key: value, with a space
              try: operant help spec""",
        ),
        (
            "envv:\n  name: X\n",
            """\
            demo.yaml:1:1: envv is not a section of a spec
              1 | envv:
                | ^^^^ did you mean env?
              try: operant help spec""",
        ),
        (
            "small:\n  name: other\n  env: {}\n",
            """\
            demo.yaml:2:9: name = "other" differs from small, which the spec is filed under
              2 |   name: other
                |         ^^^^^ leave it out""",
        ),
        (
            '"a b":\n  env: {}\n',
            """\
            demo.yaml:1:1: name = "a b" has characters that do not belong
              1 | "a b":
                | ^^^^^ letters, digits, dots, dashes and underscores
              try: operant help spec""",
        ),
    ],
)
def test_a_file_that_holds_no_spec(text: str, told: str, complaint: Complain) -> None:
    assert complaint(text) == dedent(told)


def test_a_mistake_in_toml_has_its_place(complaint: Complain) -> None:
    told = complaint("[small.env]\nnum_envs = 'x'\n[small.agent]\nmemory = {batch_sise = 3}\n", file="demo.toml")
    assert told == dedent(
        """\
        demo.toml:2:12: env.num_envs = "x" is not a whole number
          2 | num_envs = 'x'
            |            ^^^
          try: operant help env
        demo.toml:4:11: agent.memory.batch_sise is not a setting of replay
          4 | memory = {batch_sise = 3}
            |           ^^^^^^^^^^ did you mean batch_size?
          try: operant help memory replay"""
    )


def test_a_mistake_in_json_has_its_place(complaint: Complain) -> None:
    assert complaint('{\n  "env": {"num_envs": 0}\n}', file="demo.json") == dedent(
        """\
        demo.json:2:23: env.num_envs = 0 is out of range
          2 |   "env": {"num_envs": 0}
            |                       ^ must be 1 to 1,048,576; nearest: 1
          try: operant help env"""
    )


@pytest.mark.parametrize(("stem", "name"), [("my spec", "my-spec"), ("_x_", "x"), ("...", "unnamed"), ("a.b", "a.b")])
def test_a_spec_without_a_name_is_called_after_its_file(stem: str, name: str) -> None:
    Path(f"{stem}.yaml").write_text("env: {}")
    assert load(f"{stem}.yaml").spec.name == name


@pytest.mark.usefixtures("_shipped")
def test_built_in_specs_are_loaded_by_name() -> None:
    loaded = load("ppo_pole")
    assert (loaded.spec.name, loaded.spec.env.num_envs) == ("ppo_pole", 2)
    assert (loaded.builtin, loaded.path, loaded.suffix, loaded.source) == (True, None, ".yaml", SHIPPED)
    assert load("ppo_car").spec.env.name == "MountainCar-v0"
    assert load("ppo_classic", "ppo_acrobot").spec.env.name == "Acrobot-v1"


@given(st.integers(0, len(TWO)), st.integers(0, 9), st.text("{}[]:,'\"#\n\t -&*!|>%@$=.<?~0e\\é\x00", max_size=3))
def test_a_damaged_file_is_read_or_refused_but_never_breaks(at: int, cut: int, insert: str) -> None:
    Path("two.yaml").write_text(TWO[:at] + insert + TWO[at + cut :], encoding="utf-8")
    with contextlib.suppress(UsageError):
        load("two.yaml:large")


@pytest.mark.usefixtures("_shipped")
def test_an_unknown_name_in_a_built_in_file_is_told() -> None:
    assert refusal("ppo_classic", "ppo_cart") == (
        "ppo_classic: no spec is called ppo_cart; did you mean ppo_car?\n  try: operant check ppo_classic ppo_car"
    )


@pytest.mark.usefixtures("_shipped")
def test_an_override_of_a_built_in_spec_is_blamed_on_the_command_line() -> None:
    with pytest.raises(SpecError) as caught:
        load("ppo_pole", None, ["env.num_envs=0"])
    assert caught.value.place == "command line"


@pytest.mark.usefixtures("_shipped")
def test_a_file_comes_before_a_built_in_spec_of_the_same_name() -> None:
    Path("ppo_pole").mkdir()
    assert load("ppo_pole").builtin
    Path("ppo_pole.yaml").write_text("env: {num_envs: 3}")
    assert load("ppo_pole.yaml").spec.env.num_envs == 3


def test_an_anchor_may_be_called_like_a_section() -> None:
    Path("a.yaml").write_text(
        "_env: &env {num_envs: 2}\nsmall:\n  env: *env\nlarge:\n  env: {<<: *env, max_frame: 1e6}\n"
    )
    assert [each.spec.name for each in load_all("a.yaml", None)] == ["small", "large"]
