"""Writes docs/reference from the spec classes and the command line, so that it cannot disagree with them.

Run `scripts/uv run scripts/reference.py` after a field or a command has changed; a test fails until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import typer.core
import typer.main
from typer.testing import CliRunner

from operant.cli.commands import app
from operant.envs.research.mlgym import table as mlgym
from operant.spec.describe import Row, Topic, describe, topics
from operant.spec.dialects.registry import tables
from operant.spec.dialects.table import Row as DialectRow
from operant.spec.dialects.table import Table

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
COLUMNS = {"name": "setting", "type": "takes", "default": "default", "range": "range", "description": "meaning"}
AS_CODE = ("name", "default")
DIALECT = "`operant convert --explain FILE` prints this for a file, with its values. `*` stands for any key."
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1"}


def pages() -> dict[str, str]:
    """Every page of the reference: file name and content."""
    words = [words for words, _ in topics()]
    settings = {f"{head}.md": settings_page(group) for head, group in groupby(words, lambda each: each.split()[0])}
    labs = {f"dialects/{name}.md": dialect_page(title, table) for name, (title, table) in tables().items()}
    labs["dialects/mlgym.md"] = dialect_page(mlgym.TITLE, mlgym.TABLE, mlgym.ABOUT)
    return {"index.md": index_page(), "commands.md": commands_page(), **settings, **labs}


def index_page() -> str:
    """The list of all topics."""
    lines = ["# Reference", "", "| settings | |", "|---|---|"]
    for words, about in topics():
        lines.append(f"| [{words}]({words.split()[0]}.md#{words.replace(' ', '-').lower()}) | {about} |")
    return "\n".join([*lines, "", "The commands are [here](commands.md). In the terminal: `operant help`.", ""])


def dialect_page(title: str, table: Table, about: str = DIALECT) -> str:
    """What each setting of a lab's files means there and becomes here."""
    lines = [f"# Settings of {title}", "", about, "", "| setting | meaning there | here |", "|---|---|---|"]
    kinds = list(dict.fromkeys(kind for row in table.rows for kind in row.of))
    for row in table.rows:
        place = f"`{row.place}`{applies_to(row.of, kinds)}"
        lines.append(f"| {place} | {_plain(row.means)} | {_plain(here(row))} |")
    return "\n".join([*lines, ""])


def applies_to(chosen: Sequence[str], kinds: Sequence[str]) -> str:
    """Which kinds of file a row is for, by those that it is not for where these are fewer."""
    others = [kind for kind in kinds if kind not in chosen]
    if not chosen or not others:
        return ""
    return f" ({', '.join(chosen)})" if len(chosen) <= len(others) else f" (not {', '.join(others)})"


def here(row: DialectRow) -> str:
    """What becomes of a setting, in a few words."""
    ours = ", ".join(f"`{each}`" for each in row.ours)
    default = f"; `{row.default}` where it is absent" if row.default is not None else ""
    if row.kind == "refused":
        said = ", ".join(f"`{each}`" for each in row.values or () if each is not None)
        return f"refused{f' unless it is {said}' if said else ''}: it {row.said}"
    if row.kind == "ignored":
        return row.said
    return f"{ours or 'checked'}{default}{'; ' if row.said else ''}{row.said}"


def _plain(text: str) -> str:
    return text.replace("|", "\\|")


def settings_page(words: Iterable[str]) -> str:
    """The settings of the topics that share a first word."""
    found = [describe(each.split()) for each in words]
    first = found[0].title.split()[0]
    head = f"# {first}\n\n" if len(found) > 1 else ""
    return head + "\n".join(section(topic, level=2 if head else 1) for topic in found)


def section(topic: Topic, level: int) -> str:
    """One topic as a heading and a table; columns that no row fills are left out."""
    used = [key for key in COLUMNS if any(getattr(row, key) for row in topic.rows)]
    head = " | ".join(COLUMNS[key] for key in used)
    rows = (" | ".join(cell(row, key) for key in used) for row in topic.rows)
    table = [f"| {head} |", "|" + "---|" * len(used), *(f"| {row} |" for row in rows)]
    return "\n".join([f"{'#' * level} {topic.title}", "", topic.summary, "", *table, ""])


def cell(row: Row, key: str) -> str:
    """One cell; names and defaults as code."""
    text = getattr(row, key).replace("|", "\\|")
    return f"`{text}`" if text and key in AS_CODE else text


def commands_page() -> str:
    """The help of every command that is not hidden."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    names = [words for name, command in group.commands.items() if not command.hidden for words in spoken(name, command)]
    lines = [
        "# Commands",
        "",
        "Exit codes: 0 done, 1 a cell of `bench` is worse than stored, 2 usage or spec, 3 failed, 4 stopped.",
    ]
    for name in names:
        shown = CliRunner(env=TERMINAL).invoke(app, [*name.split(), "--help"], prog_name="operant").output.strip()
        lines += ["", f"## {name}", "", "```text", shown, "```"]
    return "\n".join([*lines, ""])


def spoken(name: str, command: object) -> list[str]:
    """A command's words; of a group also those of its commands."""
    inner = command.commands if isinstance(command, typer.core.TyperGroup) else {}
    return [name, *(f"{name} {each}" for each in inner)]


def main() -> None:
    """Replace the folder's pages."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.rglob("*.md"):
        old.unlink()
    (FOLDER / "dialects").mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
