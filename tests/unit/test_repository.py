"""The promises that files outside the package make about it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import operant
from operant.spec.load import load

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
CODE_REFERENCE = re.compile(r"`([\w.]+)` in `(operant/[\w/]+\.py)`")


def requirements() -> list[str]:
    """Every requirement written by hand: default, extras and groups."""
    project, groups = MANIFEST["project"], MANIFEST["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    return [line for lines in lists for line in lines if not line.startswith("operant")]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0]


def test_the_manifest_and_the_package_have_one_version() -> None:
    assert MANIFEST["project"]["version"] == operant.__version__


def test_every_direct_dependency_is_pinned_exactly() -> None:
    pins = MANIFEST["tool"]["uv"]["constraint-dependencies"]
    exact = {name_of(pin) for pin in pins if re.search(r"==\d[\w.]*( ;|$)", pin)}
    assert {name_of(line) for line in requirements()} - exact == set()


def test_no_pin_names_a_build_of_one_machine() -> None:
    assert [pin for pin in MANIFEST["tool"]["uv"]["constraint-dependencies"] if "+" in pin or "@" in pin] == []


def test_every_direct_dependency_says_why_it_is_there() -> None:
    reasons = (ROOT / "docs/decisions/dependencies.md").read_text().replace("ruamel.yaml", "ruamel-yaml")
    named = set(re.findall(r"[\w-]+", reasons))
    assert {name_of(line) for line in requirements()} - named == set()


def code_references() -> Iterator[tuple[str, str, str]]:
    for page in PAGES:
        for name, file in CODE_REFERENCE.findall(page.read_text()):
            yield str(page.relative_to(ROOT)), name, file


@pytest.mark.parametrize(("page", "name", "file"), sorted(set(code_references())))
def test_code_named_in_the_docs_exists(page: str, name: str, file: str) -> None:
    scope: ast.AST = ast.parse((ROOT / file).read_text())
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = [node for node in ast.iter_child_nodes(scope) if isinstance(node, kinds) and node.name == part]
        assert found, f"{page} names {name}, which {file} does not define"
        scope = found[0]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#]+)", text) + re.findall(r'(?:src|href)="([^"#]+)"', text)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_commands_shown_in_the_docs_exist() -> None:
    known = set(re.findall(r"^## (\w+)$", (ROOT / "docs/reference/commands.md").read_text(), re.MULTILINE))
    shells = [body for page in PAGES for kind, body in BLOCK.findall(page.read_text()) if kind == "sh"]
    named = {name for body in shells for name in re.findall(r"\boperant ([a-z]+)", body)}
    assert named - known == set()
    assert {"train", "resume"} <= named


def test_the_spec_shown_in_the_docs_is_valid(tmp_path: Path) -> None:
    blocks = [body for kind, body in BLOCK.findall((ROOT / "docs/howto/spec.md").read_text()) if kind == "yaml"]
    file = tmp_path / "pendulum.yaml"
    file.write_text(blocks[0])
    assert load(str(file), None, ["gamma=0.9"]).spec.env.name == "Pendulum-v1"
