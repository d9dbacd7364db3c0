"""`operant new`: a part of one's own that works as it is, with a spec that trains it and a test of its promises."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from operant.cli.options import AsJson
from operant.cli.output import document, say
from operant.errors import EXIT_DONE, UsageError

KINDS = ("algorithm", "env", "net", "task", "schedule", "reward")
FUNCTIONS = ("reward",)
"""Kinds of which a part is a function, and called as its module is; all others are classes."""
NAME = re.compile(r"[a-z][a-z0-9_]*")
TEST = '''\
"""The promises of {module}, as `operant check --contract {module}:{part}` tells them."""

from pathlib import Path

import pytest

from operant.contract.runner import run_contract
from operant.contract.targets import contract_spec


def test_{module}_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Where the module is found, here and in the processes that train it.
    monkeypatch.chdir(Path(__file__).parent)
    findings = list(run_contract(contract_spec("{module}:{part}"), tmp_path))
    assert not [str(finding) for finding in findings if not finding.kept]
'''


def complete_kind(incomplete: str) -> list[str]:
    """The kinds of parts."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def new(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="algorithm, env, net, task, schedule or reward.",
            autocompletion=complete_kind,
            show_default=False,
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The module's name, such as my_env.", show_default=False)],
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where to write.")] = Path(),
    as_json: AsJson = False,
) -> int:
    """Write a part of your own that works as it is: NAME.py, a spec that trains it, and a test of its promises.

    \b
      operant new env my_env
      operant new algorithm my_ppo --dir lab
    """
    if kind not in KINDS:
        raise UsageError(f"there is no kind of part {kind!r}", remedy=f"choose one of: {', '.join(KINDS)}")
    files = {folder / file: text for file, text in _files(kind, _checked(name)).items()}
    _refuse_overwriting(list(files), name)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    written = [str(path) for path in files]
    part = f"{name}:{part_name(kind, name)}"
    if as_json:
        document({"part": part, "written": written, "exit": EXIT_DONE})
        return EXIT_DONE
    say(f"wrote {', '.join(written)}")
    if folder != Path():
        say(f"  go there: cd {folder}")
    say(
        f"  check:    operant check --contract {part}",
        f"  train:    operant train {name}.yaml",
        f"  test:     pytest test_{name}.py",
    )
    return EXIT_DONE


def class_name(name: str) -> str:
    """my_env as MyEnv."""
    return "".join(word.capitalize() for word in name.split("_"))


def part_name(kind: str, name: str) -> str:
    """What the part is called in its module."""
    return name if kind in FUNCTIONS else class_name(name)


def _files(kind: str, name: str) -> dict[str, str]:
    """The texts to write, by file name: the templates with the names replaced."""
    # The template's module name stands alone or beside a dot or colon; the class may be the stem of another's name.
    before, class_before = f"my_{kind}", class_name(f"my_{kind}")
    texts = {
        f"{name}.{suffix}": resources.files("operant.templates").joinpath(f"{kind}.{suffix}").read_text("utf-8")
        for suffix in ("py", "yaml")
    }
    renamed = {file: text.replace(class_before, class_name(name)).replace(before, name) for file, text in texts.items()}
    return renamed | {f"test_{name}.py": TEST.format(module=name, part=part_name(kind, name))}


def _checked(name: str) -> str:
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        suggested = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")
        usable = suggested if NAME.fullmatch(suggested) and not keyword.iskeyword(suggested) else "my_part"
        raise UsageError(
            f"{name!r} cannot be a module: lower-case letters, digits and underscores, a letter first",
            remedy=f"for example {usable}",
        )
    return name


def _refuse_overwriting(paths: list[Path], name: str) -> None:
    taken = [str(path) for path in paths if path.exists()]
    if taken:
        raise UsageError(f"there is already {', '.join(taken)}", remedy="take another name, or --dir DIR")
    if find_spec(name) is not None:
        raise UsageError(
            f"Python has a module {name} already, which would be imported in place of yours",
            remedy=f"for example my_{name}",
        )
