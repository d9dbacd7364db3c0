"""Advice about what to install: commands that exist, for extras that exist, and that never remove anything."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from operant import install

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_every_extra_that_is_named_exists() -> None:
    assert set(install.EXTRA_OF.values()) <= set(EXTRAS)


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_an_extra_asks_for_leads_back_to_an_extra_that_brings_it(extra: str) -> None:
    """`research` brings nothing of its own, and gymnasium[mujoco] brings mujoco."""
    names = [re.split(r"[\[>= ;]", line)[0] for line in EXTRAS[extra]]
    modules = {"gymnasium": "mujoco", "box2d": "Box2D", "box2d-py": "Box2D"}
    modules |= {"mlflow-skinny": "mlflow", "psycopg2-binary": "psycopg2", "playground": "mujoco_playground"}
    modules |= {"mujoco-mjx": "mujoco.mjx"}
    for name in names:
        module = modules.get(name, name.replace("-", "_"))
        if module != "operant":
            assert module in install.EXTRA_OF, f"add {module} to EXTRA_OF"


def test_core_modules_are_no_extras() -> None:
    assert not set(install.CORE) & set(install.EXTRA_OF)


def test_in_a_clone_the_command_adds_and_never_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    assert install.install_module("transformers") == "scripts/uv sync --inexact --extra language"
    assert install.install_module("numpy") == "scripts/uv sync --inexact"
    assert install.install_module("gymnax").startswith("scripts/uv pip install ")


def test_from_another_folder_the_clone_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    assert install.install_extra("jax") == f"{ROOT}/scripts/uv sync --project {ROOT} --inexact --extra jax"


def test_an_installed_package_is_extended_by_the_pip_of_its_own_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(install, "CLONE", tmp_path)
    told = install.install_extra("jax")
    assert told.endswith(" 'operant[jax]'")
    assert told.startswith(("pip install", "uv pip install --python")) or sys.executable in told


@pytest.mark.parametrize("folder", ["operant", "docs", "README.md"])
def test_nowhere_else_is_an_extra_installed_in_another_way(folder: str) -> None:
    place = ROOT / folder
    files = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.md")]
    for file in files:
        for line in file.read_text().splitlines():
            if "--extra" in line and "uv sync" in line:
                assert "--inexact" in line, f"{file}: {line}"
            assert file.name == "install.py" or "pip install operant" not in line.replace("'", ""), f"{file}: {line}"


def test_the_modules_of_the_table_are_real() -> None:
    """Those that are installed here can be found by these names."""
    assert all(find_spec(name) for name in install.CORE)
