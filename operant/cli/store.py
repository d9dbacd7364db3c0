"""`operant push`, `pull`, `sync` and `ls`: runs in a store (S3, the Hugging Face hub, a folder)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operant.cli.completers import complete_run
from operant.cli.options import DEFAULT_ROOT, AsJson, Root, RunName
from operant.cli.output import aside, document, plural, say, size
from operant.errors import EXIT_DONE, EXIT_FAILED

if TYPE_CHECKING:
    from operant.store.download import Pulled
    from operant.store.upload import Sent

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL", help="s3://BUCKET/PREFIX, hf://OWNER/REPO[/FOLDER], or a folder.", show_default=False
    ),
]
Delete = Annotated[bool, typer.Option("--delete", help="Remove there what is no longer here.")]


def push(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A run as in other commands, or the URL of a stored one.", autocompletion=complete_run
        ),
    ],
    url: Url,
    delete: Delete = False,
    force: Annotated[
        bool, typer.Option("--force", help="Send everything again, and replace a newer or another run there.")
    ] = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Store a run below a URL; files that are there already are not sent again.

    A checkpoint appears there when all of it has arrived. An interrupted push continues with the
    same command.

    \b
      operant push ppo_cartpole s3://bucket/runs
      operant push latest hf://me/dev-runs
      operant push hf://me/dev-runs/ppo_cartpole hf://lab/public-runs
    """
    from operant.api.store import push as push_run

    sent = push_run(run, url, delete=delete, force=force, root=root, report=aside)
    return _tell_sent(sent, as_json)


def pull(
    url: Url,
    pattern: Annotated[
        str | None,
        typer.Argument(metavar="PATTERN", help="Which runs, such as 'ppo_*'; '*' for all.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Run directory, instead of RUNS/NAME/STAMP.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Set a run aside that is newer or different here, and put the stored one there."),
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove local files of the run that are not stored.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Leave out checkpoints of which an object is damaged.")
    ] = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Bring a stored run here, every byte verified; the newest of its spec where the URL names several.

    A run that is here and newer or different is left alone, and what differs is said.

    \b
      operant pull s3://bucket/runs/ppo_cartpole
      operant pull hf://lab/public-runs 'ppo_*'
    """
    from operant.api.store import pull as pull_runs

    pulled = pull_runs(
        url, pattern, root=root, out=out, force=force, delete=delete, accept_loss=accept_loss, report=aside
    )
    if as_json:
        document({"runs": [each.as_dict() for each in pulled], "exit": EXIT_DONE})
    else:
        say(*(_pulled_line(each) for each in pulled), "next:", f"  operant show {_shown(pulled[-1].path)}")
    return EXIT_DONE


def sync(
    run: RunName,
    url: Url,
    delete: Delete = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
    launched: Annotated[bool, typer.Option("--launched", hidden=True)] = False,
) -> int:
    """Push a run, and push again while it trains; ends when training has ended and everything is there.

    \b
      operant sync ppo_cartpole s3://bucket/runs
      operant train ppo_cartpole -s meta.sync=s3://bucket/runs      (the same, started with the run)
    """
    if launched:
        from operant.api.cards import pages
        from operant.store.watch import serve

        experiment = Path(run)
        whole = serve(experiment, url, delete=delete, pages=lambda store, key: pages(store, key, experiment))
        return EXIT_DONE if whole else EXIT_FAILED
    from operant.api.store import sync as sync_run

    return _tell_sent(sync_run(run, url, delete=delete, root=root, report=aside), as_json)


def ls(url: Url, as_json: AsJson = False) -> int:
    """List the runs in a store: state, sessions done, frames, score, size, and age of the last upload.

    \b
      operant ls s3://bucket/runs
      operant ls hf://lab/public-runs --json
    """
    from operant.api.store import list_stored
    from operant.report.formatting import columns, compact, duration

    rows = list_stored(url, aside)
    if as_json:
        document({"runs": [row.as_dict() for row in rows], "exit": EXIT_DONE})
        return EXIT_DONE
    if not rows:
        say(f"no runs are stored at {url}; push one: operant push RUN {url}")
        return EXIT_DONE
    head = ["run", "state", "sessions", "frames", "score", "size", "age"]
    several = {row.run for row in rows if row.trial != "trial_000"}
    cells = [
        [
            f"{row.run}/{row.trial}" if row.run in several else row.run,
            row.state,
            f"{row.sessions_done}/{row.sessions}",
            compact(row.frames),
            "-" if row.score is None else ("" if row.score_is_final else "~") + row.score.text(),
            size(row.size),
            duration(row.age),
        ]
        for row in rows
    ]
    say(*columns([head, *cells], right={2, 3, 5}))
    if any(row.score is not None and not row.score_is_final for row in rows):
        say("~ score of the last evaluation; training was not over")
    return EXIT_DONE


def _tell_sent(sent: Sent, as_json: bool) -> int:
    if as_json:
        document({**sent.as_dict(), "exit": EXIT_DONE})
        return EXIT_DONE
    gone = f", {plural(sent.deleted, 'object')} removed" if sent.deleted else ""
    say(f"{plural(sent.files, 'file')} ({size(sent.bytes)}) sent, {sent.kept:,} there already{gone}: {sent.place}")
    say("next:", f"  operant pull {sent.place}", f"  operant resume {sent.place}")
    return EXIT_DONE


def _pulled_line(pulled: Pulled) -> str:
    place = _shown(pulled.path)
    if pulled.state == "up to date":
        return f"{place} is up to date with {pulled.source}"
    if pulled.state == "ahead":
        return f"{place} is newer than {pulled.source}; nothing was pulled"
    aside = "" if pulled.set_aside is None else f"; the run that was here is in {_shown(pulled.set_aside)}"
    return f"{plural(pulled.files, 'file')} ({size(pulled.bytes)}) fetched and verified: {place}{aside}"


def _shown(path: Path) -> str:
    from operant.run.layout import shown

    return shown(path)
