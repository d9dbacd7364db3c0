"""`operant show`: a run in summary, or its episodes. Nothing here changes a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.completers import complete_run
from operant.cli.options import DEFAULT_ROOT, AsJson, Root
from operant.cli.output import document, plural, say
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.run.run import Run

Shown = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN[#EPISODE]",
        help="A run as in other commands, or a file of episodes; with #EPISODE one of them, and two to compare.",
        autocompletion=complete_run,
        show_default=False,
    ),
]


def show(
    chosen: Shown,
    episodes: Annotated[bool, typer.Option("--episodes", help="List the episodes, newest first.")] = False,
    task: Annotated[str | None, typer.Option("--task", metavar="NAME", help="List those of a task (blotto*).")] = None,
    item: Annotated[str | None, typer.Option("--item", metavar="NAME", help="List those of a problem.")] = None,
    split: Annotated[str | None, typer.Option("--split", metavar="WORD", help="train, eval or final.")] = None,
    ended: Annotated[
        str | None, typer.Option("--ended", metavar="WORD", help="terminated, truncated or error.")
    ] = None,
    score: Annotated[str | None, typer.Option("--score", metavar="A..B", help="Scores from A to B.")] = None,
    version: Annotated[str | None, typer.Option("--version", metavar="A..B", help="Policy versions A to B.")] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="WORDS", help="Those in which this was said.")] = None,
    faults: Annotated[bool, typer.Option("--faults", help="Those with a faulty turn.")] = False,
    errors: Annotated[bool, typer.Option("--errors", help="Those that ended in an error.")] = False,
    sort: Annotated[
        str, typer.Option("--sort", metavar="ORDER", help="newest, best, worst, longest or slowest first.")
    ] = "newest",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="List at most N.")] = 20,
    tree: Annotated[bool, typer.Option("--tree", help="Draw the search trees, or the one of #EPISODE.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Every line of long turns.")] = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Show a run: curve, score with interval, every session, checkpoints, parent and provenance.

    Or its episodes: a list, one as a timeline, two side by side, a search as a tree.

    \b
      operant show ppo_cartpole
      operant show grpo_blotto --episodes --split eval --sort worst
      operant show grpo_blotto#17
      operant show grpo_blotto#17 grpo_blotto#23
    """
    from operant.cli.episodes import Request, show_episodes, wants_episodes

    request = Request(task, item, split, ended, score, version, text, faults, errors, sort, limit, tree, full, episodes)
    if wants_episodes(chosen, request):
        return show_episodes(chosen, root, request, as_json)
    return _show_run(chosen[0], root, as_json)


def _show_run(run: str, root: Path, as_json: bool) -> int:
    from operant.cli.opening import open_place
    from operant.cli.trial_summary import result, summary_document
    from operant.report.read import trials_of
    from operant.run.inventory import faults
    from operant.run.layout import SEARCH_FILE
    from operant.run.run import find_sessions
    from operant.store.status import read_status, status_line

    place = open_place(run, root)
    if (place / SEARCH_FILE).is_file():
        return _show_search(place, as_json)
    sessions = find_sessions(place)
    trials = trials_of(place)
    if as_json:
        summaries = [summary_document(trial) for trial in trials]
        facts = [_session_facts(each) for each in sessions]
        missing = [str(fault) for fault in faults(place)]
        upload = read_status(sessions[0].path.parent.parent)
        document({"trials": summaries, "sessions": facts, "faults": missing, "sync": upload, "exit": EXIT_DONE})
        return EXIT_DONE
    for trial in trials:
        say(*result(trial, metrics=True), "")
    upload = status_line(sessions[0].path.parent.parent)
    say(*_origin_lines(sessions), *([upload] if upload else []), *_next_lines(place, sessions))
    return EXIT_DONE


def _show_search(place: Path, as_json: bool) -> int:
    """The trials of a search, best first."""
    from operant.cli.search_summary import search_document, search_ending

    if as_json:
        document({**search_document(place), "exit": EXIT_DONE})
    else:
        say(*search_ending(place))
    return EXIT_DONE


def _origin_lines(sessions: list[Run]) -> list[str]:
    """Checkpoints, provenance, parent and prompts of each session."""
    from operant.run.layout import shown
    from operant.run.prompt_balance import check_prompts

    lines = []
    for run in sessions:
        facts = _session_facts(run)
        frames = ", ".join(f"{each['frames']:,}" for each in facts["checkpoints"])
        saved = f"checkpoints at frames {frames}" if frames else "no checkpoint"
        lines.append(f"{run.path.name}: {saved}; {plural(run.threads, 'thread')}; {shown(run.path)}")
        if facts["provenance"] is not None:
            lines.append(f"  provenance {facts['provenance']}")
        if run.parent is not None:
            lines.append(f"  fork of {run.parent['run']}, begun at its frame {run.parent['frames']:,}")
        balance = check_prompts(run)
        if balance is not None:
            lines.append(f"  prompts: {balance}")
        lines += [f"  {line}" for line in _tracker_lines(run)]
    return lines


def _tracker_lines(run: Run) -> list[str]:
    """What each tracker has of the session, or why it gets no further."""
    from operant.run.layout import shown
    from operant.trackers.position import read_positions

    lines = []
    for tracker, at in read_positions(run.path).items():
        reached = f"{plural(at.rows, 'row')} to frame {at.step:,}" if at.rows else "nothing yet"
        place = shown(at.place) if Path(at.place).is_dir() else at.place
        lines.append(f"track {at.error}" if at.error else f"track {tracker}: {reached}; {place}")
    return lines


def _session_facts(run: Run) -> dict[str, Any]:
    from operant.run.checkpoint import list_checkpoints
    from operant.run.layout import provenance_path, shown
    from operant.run.prompt_balance import check_prompts
    from operant.trackers.position import read_positions

    saved = list_checkpoints(run.checkpoints)
    provenance = provenance_path(run.path, run.attempts)
    balance = check_prompts(run)
    return {
        "session": shown(run.path),
        "state": run.state,
        "error": run.error,
        "threads": run.threads,
        "parent": run.parent,
        "checkpoints": [{"path": shown(each.path), "frames": each.at.frames, "score": each.score} for each in saved],
        "provenance": shown(provenance) if provenance.is_file() else None,
        "prompts": None if balance is None else balance.as_dict(),
        "track": {
            tracker: {"rows": at.rows, "frames": at.step, "state": at.state, "error": at.error, "place": at.place}
            for tracker, at in read_positions(run.path).items()
        },
    }


def _next_lines(place: Path, sessions: list[Run]) -> list[str]:
    from operant.report.episodes import holds_episodes
    from operant.run.layout import shown

    states = {run.state for run in sessions}
    verb = "watch" if states == {"done"} else "resume"
    lines = [] if "running" in states else [f"  operant {verb} {shown(place)}"]
    if holds_episodes(place):
        lines.append(f"  operant show {shown(place)} --episodes")
    return ["", "next:", *lines] if lines else []
