"""`operant tag` and `operant archive`: words on runs, and runs that are put away. Nothing is moved or deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.options import DEFAULT_ROOT, AsJson, Root, RunName
from operant.cli.output import document, say
from operant.errors import EXIT_DONE, UsageError


def tag(
    run: RunName,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="+TAG|-TAG", help="Tags to add, and to remove.", show_default=False),
    ] = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Put tags on a run, or take them off; without tags, print those it has.

    \b
      operant tag ppo_cartpole +paper +baseline
      operant tag ppo_cartpole -baseline
      operant runs --tag paper
    """
    from operant.api.tagging import tag as tag_run
    from operant.run.layout import shown

    words = changes or []
    unknown = next((word for word in words if word.startswith("--")), None)
    if unknown:
        raise UsageError(f"there is no option {unknown}", remedy="operant tag --help")
    remove = [word[1:] for word in words if word.startswith("-")]
    add = [word.removeprefix("+") for word in words if not word.startswith("-")]
    path, tags = tag_run(run, add=add, remove=remove, root=root)
    if as_json:
        document({"run": shown(path), **tags.as_dict(), "exit": EXIT_DONE})
    else:
        say(f"{shown(path)}: {' '.join(tags.tags) or 'no tags'}")
    return EXIT_DONE


def archive(
    run: RunName,
    undo: Annotated[bool, typer.Option("--undo", help="List it again.")] = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Leave a run out of `operant runs`; --archived lists it still. Nothing of it is moved or deleted.

    \b
      operant archive ppo_cartpole/20260101-120000
      operant archive ppo_cartpole/20260101-120000 --undo
    """
    from operant.api.tagging import archive as archive_run
    from operant.run.layout import shown

    path, tags = archive_run(run, not undo, root=root)
    if as_json:
        document({"run": shown(path), **tags.as_dict(), "exit": EXIT_DONE})
    else:
        hint = "listed again" if undo else "archived; listed by operant runs --archived"
        say(f"{shown(path)}: {hint}")
    return EXIT_DONE
