"""`operant track`: a run in W&B, TensorBoard, MLflow or Trackio, after the fact or while it trains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operant.cli.completers import complete_tracker
from operant.cli.options import DEFAULT_ROOT, AsJson, Root, RunName
from operant.cli.output import aside, document, plural, say
from operant.errors import EXIT_DONE, EXIT_FAILED


def track(
    run: RunName,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="TRACKER",
            help="tensorboard, wandb, mlflow, trackio or module:Class; may be repeated. Default: those of meta.track.",
            autocompletion=complete_tracker,
            show_default=False,
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-s", metavar="KEY=VALUE", help="A setting, such as wandb.mode=offline.", show_default=False
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the run has ended.")] = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Copy a run's curves, episodes and videos to trackers. What a tracker has already does not come twice.

    \b
      operant track ppo_cartpole --to tensorboard
      operant track ppo_cartpole --to wandb -s wandb.project=demo -s wandb.mode=offline
      operant track ppo_cartpole --to mlflow --follow
    """
    from operant.api.tracking import copied, trackers_for
    from operant.cli.opening import open_place
    from operant.run.layout import shown
    from operant.run.run import find_sessions
    from operant.trackers.start import require_trackers

    sessions = find_sessions(open_place(run, root))
    trackers = trackers_for(sessions[0], to, overrides or ())
    require_trackers(trackers)
    names = ", ".join(each.name for each in trackers)
    (aside if as_json else say)(f"{plural(len(sessions), 'session')} to {names}")
    found = copied(sessions, trackers, follow=follow)
    code = EXIT_FAILED if any(each.error for each in found) else EXIT_DONE
    if as_json:
        facts = [{**vars(each), "session": shown(each.session.path)} for each in found]
        document({"tracked": facts, "exit": code})
        return code
    for each in found:
        place = shown(each.place) if Path(each.place).is_dir() else each.place
        reached = f"{plural(each.rows, 'row')} to frame {each.frames:,}; {place}"
        say(f"{each.session.path.name} {each.error or f'{each.tracker}: {reached}'}")
    return code
