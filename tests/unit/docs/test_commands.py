"""Every command, setting, spec and link in README.md and docs/ exists. `tests/e2e/test_docs_run.py` runs them."""

from __future__ import annotations

import re
import shlex
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from operant.benchmark.suite import SuiteSpec
from operant.cli.commands import app
from operant.envs.research.schema import TaskFile
from operant.errors import OperantError
from operant.spec.builtin import builtin_names
from operant.spec.load import load, load_mapping
from tests.pages import PAGES, ROOT, Place, blocks, commands, mentions

TREE = get_command(app)
COMMANDS = [command for page in PAGES for command in commands(page)]
MENTIONS = [mention for page in PAGES for mention in mentions(page)]
BUILTIN = {name for name, _, _ in builtin_names()}
AT_ONCE = {name for option in TREE.params for name in option.opts}
SPEC_COMMANDS = ("train", "check", "search", "launch", "convert")
BASES = ("ppo_cartpole", "dqn_cartpole", "ppo_cartpole_search", "grpo_tiny")
"""The specs of which a piece of YAML may be a part."""
PLACES = ((), ("agent", "algorithm"), ("agent", "net"))
"""Where in a spec the piece may stand."""


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def of_kind(kind: str) -> list[Place]:
    return [block for page in PAGES for block in blocks(page) if block.kind == kind]


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The command that the words name, with its arguments; raises what the command line would.

    The options before any command act while they are read, and `--install-completion` would write to the shell's own
    files: they are looked up and not read.
    """
    if not words or words[0] in AT_ONCE:
        return "operant", {}
    name: Any = "operant"
    command: Any = TREE
    context = None
    while True:
        context = command.make_context(name, list(words), parent=context)
        words = [*context._protected_args, *context.args]
        if not isinstance(command, TyperGroup) or not words:
            return name, context.params
        name, command, words = command.resolve_command(context, words)


def test_the_pages_are_found() -> None:
    assert len(COMMANDS) > 150
    assert len(PAGES) > 50
    assert {"docs/howto/launch.md", "README.md"} <= {str(each.page.relative_to(ROOT)) for each in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_can_be_typed(command: Place) -> None:
    name, arguments = parsed(shlex.split(command.text)[1:])
    check_target(name, arguments)


def check_target(name: str, arguments: dict[str, Any]) -> None:
    """The spec that a command names is a built-in one with these settings, or the reader's own file."""
    target, overrides = arguments.get("target"), arguments.get("overrides") or []
    if name not in SPEC_COMMANDS or target in (None, "best"):
        return
    if target not in BUILTIN:
        assert re.search("[./:]|[A-Z]+$", target), f"there is no spec {target}"
    elif overrides:
        load(target, overrides=overrides)


@pytest.mark.parametrize("mention", MENTIONS, ids=str)
def test_a_command_in_a_sentence_can_be_typed(mention: Place) -> None:
    words = ["1" if word == "N" else word for word in shlex.split(mention.text)[1:] if word != "..."]
    try:
        name, arguments = parsed(words)
        check_target(name, {"target": arguments.get("target")})  # a shown mistake may be meant
    except TyperException as problem:
        # A sentence may name a command or an option without what comes behind it.
        if not re.search("Missing argument|requires an argument", problem.format_message()):
            raise


@pytest.mark.parametrize("block", of_kind("python"), ids=str)
def test_python_compiles(block: Place) -> None:
    compile(block.text, str(block), "exec")


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with the files that the pages show."""
    shutil.copytree(ROOT / "docs/examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize("block", of_kind("yaml"), ids=str)
def test_yaml_is_a_spec_or_a_part_of_one(block: Place) -> None:
    for text in alternatives(block.text):
        piece = YAML(typ="safe", pure=True).load(text)
        if piece and "prompt" in piece:
            TaskFile.model_validate(piece)
        elif piece and "cells" in piece:
            SuiteSpec.model_validate({"name": "shown", **piece})
        elif piece:
            check_piece(piece)


def alternatives(text: str) -> list[str]:
    """A block that says one key several times shows several ways to write it."""
    lines = text.splitlines()
    once = len(lines) == len({line.split(":")[0] for line in lines})
    return [text] if once or any(line.startswith((" ", "-")) for line in lines) else lines


def check_piece(piece: dict[str, Any]) -> None:
    problems = []
    for base in (None, *BASES):
        for place in PLACES if base else PLACES[:1]:
            spec = written(base) if base else {}
            try:
                load_mapping(
                    merged(spec, nested(piece, place)), overrides=["gamma=0.9"] if "${gamma}" in str(piece) else []
                )
                return
            except OperantError as problem:
                problems.append(f"{base} {'.'.join(place)}: {problem}")
    pytest.fail("\n".join(problems))


@cache
def written(name: str) -> dict[str, Any]:
    return load(name).spec.model_dump(mode="json", exclude_unset=True)


def nested(piece: dict[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    for key in reversed(place):
        piece = {key: piece}
    return piece


def merged(base: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    """`piece` put over `base`; another algorithm or net takes the place of the base's with all its settings."""
    both = {**base, **piece}
    for key in base.keys() & piece.keys():
        old, new = base[key], piece[key]
        if isinstance(old, dict) and isinstance(new, dict):
            other = key != "env" and any(new.get(tag, old.get(tag)) != old.get(tag) for tag in ("name", "type"))
            both[key] = new if other else merged(old, new)
    return both


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    prose = _CODE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(prose):
        if re.match(r"\w+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs makes them; it numbers those that come twice."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    words = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in _HEADING.findall(text)]
    return {re.sub(r"[-\s]+", "-", each) for each in words}
