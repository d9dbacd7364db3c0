"""`operant help TOPIC` and `operant schema`: what may be written in a spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.completers import complete_topic
from operant.cli.files import write_new
from operant.cli.options import AsJson
from operant.cli.output import document, say
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.spec.describe import Topic


def help_(
    context: typer.Context,
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC",
            help="A section, an algorithm, net or memory, the name or path of a setting, or a command.",
            autocompletion=complete_topic,
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Explain every setting of a section or algorithm, or all of one name: type, default, range and meaning.

    \b
      operant help                      the topics
      operant help algorithm ppo        (or just: operant help ppo)
      operant help env
      operant help gamma                every setting of that name
      operant help agent.algorithm.gamma
    """
    from operant.spec.describe import describe

    words = topic or []
    program: Any = context.find_root().command
    if len(words) == 1 and words[0] in program.commands:
        return program.main([*words, "--help"], prog_name="operant", standalone_mode=False) or EXIT_DONE
    found = describe(words)
    if as_json:
        rows = [vars(row) for row in found.rows]
        document({"topic": found.title, "summary": found.summary, "rows": rows, "exit": EXIT_DONE})
    else:
        say(*_lines(found))
    return EXIT_DONE


def schema(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it to a new file instead of printing it.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Print the JSON Schema of spec files, for completion and checks in editors.

    \b
      operant schema --out operant.schema.json
    then begin a spec with
      # yaml-language-server: $schema=operant.schema.json
    """
    from operant.run.layout import shown
    from operant.spec.describe import json_schema

    if out is None:
        document(json_schema())
        return EXIT_DONE
    write_new(out, json.dumps(json_schema(), indent=2) + "\n", "operant schema")
    if as_json:
        document({"file": shown(out), "exit": EXIT_DONE})
    else:
        say(shown(out))
    return EXIT_DONE


def _lines(topic: Topic) -> list[str]:
    """The topic as an aligned table; columns that no row fills are left out."""
    from operant.report.formatting import columns

    head = {"name": "", "of": "of", "type": "takes", "default": "default", "range": "range", "description": ""}
    rows = [vars(row) for row in topic.rows]
    used = [key for key in head if any(row.get(key) for row in rows)]
    table = [[row[key] for key in used] for row in rows]
    headings = [[head[key] for key in used]] if "default" in used or "type" in used else []
    return [f"{topic.title}: {topic.summary}", "", *(f"  {line}".rstrip() for line in columns([*headings, *table]))]
