"""`operant eval` and `operant watch`: play a trained policy."""

from __future__ import annotations

import os
import re
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.eval_options import (
    EvalOptions,
    Follow,
    Harness,
    Limit,
    Out,
    Samples,
    Search,
    Shots,
    TaskArguments,
    Tasks,
    Temperature,
    Url,
)
from operant.cli.files import new_file
from operant.cli.model_evaluation import evaluate_on_tasks
from operant.cli.model_references import Device, Dtype, Manner, RunOrModel
from operant.cli.options import DEFAULT_ROOT, AsJson, CheckpointName, Root, RunName
from operant.cli.output import aside, document, plural, say
from operant.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from operant.report.stats import Estimate
    from operant.run.checkpoint import Checkpoint
    from operant.run.run import Run

LATEST, BEST = "latest", "best"
OtherEnv = Annotated[
    str | None,
    typer.Option(
        "--env", metavar="NAME", help="Play in this environment, which has the observations and actions of the run's."
    ),
]


def evaluate(
    run: RunOrModel,
    episodes: Annotated[
        int | None,
        typer.Option(
            "--episodes", metavar="N", min=1, help="Episodes per session; the spec's final_episodes by default."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="First episode seed; the spec's eval_seed by default."),
    ] = None,
    checkpoint: CheckpointName = LATEST,
    sampled: Annotated[bool, typer.Option("--sampled", help="Sample actions instead of taking the best.")] = False,
    env: OtherEnv = None,
    tasks: Tasks = None,
    shots: Shots = None,
    samples: Samples = 1,
    limit: Limit = None,
    arguments: TaskArguments = None,
    temperature: Temperature = None,
    follow: Follow = False,
    harness: Harness = None,
    search: Search = None,
    out: Out = None,
    url: Url = None,
    device: Device = None,
    dtype: Dtype = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Play every session's policy on fixed seeds, and report the score with its interval over sessions.

    The episodes are appended to eval.jsonl in each session's directory. With --env they are played in another
    environment, as Gymnasium makes it; that score is not the run's own. With --tasks a language model, from a run
    or by itself, is asked the held-out problems of these tasks as in training.

    \b
      operant eval ppo_cartpole
      operant eval ppo_cartpole --checkpoint best --episodes 20 --seed 7
      operant eval ppo_halfcheetah_mjx --env HalfCheetah-v5
      operant eval grpo_tiny --tasks copy --follow
      operant eval smollm2-135m-instruct --tasks gsm8k,mbpp --samples 8 --limit 100
    """
    manner = Manner(device, dtype, url)
    options = EvalOptions(
        tasks, shots, samples, limit, arguments or [], temperature, seed, out, follow, harness, manner, search
    )
    if tasks is not None and env is not None:
        raise UsageError("--env has no effect with --tasks: tasks are answered, not played", remedy="leave one out")
    if tasks is not None:
        return evaluate_on_tasks(run, checkpoint, root, options, as_json)
    options.refuse_without_tasks()
    from operant.api.evaluation import Evaluation, evaluate_sessions
    from operant.cli.opening import open_place

    place = open_place(run, root)
    scores = []
    for each in evaluate_sessions(place, episodes, seed, checkpoint, not sampled, env=env):
        scores.append(each)
        if not as_json:
            say(_row_line(each.as_dict()))
    found = Evaluation(tuple(scores))
    rows = [each.as_dict() for each in scores]
    if as_json:
        score = found.score.as_dict() if found.score else None
        document({"score": score, "env": env, "greedy": not sampled, "sessions": rows, "exit": EXIT_DONE})
    else:
        say(_score_line(found.score, rows, sampled))
    return EXIT_DONE


def watch(
    run: RunName,
    episodes: Annotated[int, typer.Option("--episodes", metavar="N", min=1, help="Episodes to play.")] = 1,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="First episode seed; the spec's eval_seed by default."),
    ] = None,
    checkpoint: CheckpointName = BEST,
    latest: Annotated[bool, typer.Option("--latest", help="The newest checkpoint: --checkpoint latest.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write a video (.gif, .mp4) or a replay (.html) instead."),
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Play in this terminal (HackMatrix).")] = False,
    env: OtherEnv = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Watch the agent play: in a window, or as a video in the run's media folder where there is no screen.

    Of several sessions the one with the best evaluation plays, by default with its best checkpoint.

    \b
      operant watch ppo_cartpole
      operant watch ppo_cartpole --episodes 3 --out cartpole.mp4
    """
    from operant.api.evaluation import playing_in
    from operant.api.policy import engine_of_run
    from operant.api.runs import best_score, choose_checkpoint
    from operant.cli.opening import warn
    from operant.run.layout import shown
    from operant.run.run import find_sessions, resolve

    place, asked = _checkpoint_named(resolve(run, root).resolve(), LATEST if latest else checkpoint)
    best = max(find_sessions(place), key=best_score)
    warn(place, aside)
    playing = playing_in(best, env)
    saved = choose_checkpoint(best, asked)
    first = best.spec["meta"]["eval_seed"] if seed is None else seed
    sink: str | Path = "window" if _has_screen() else _video_path(best, saved, first, episodes, env)
    if out or terminal:
        sink = new_file(out) if out else "terminal"
    if not as_json:
        where = f" in {env}" if env else ""
        say(f"{shown(best.path)} at frame {saved.at.frames:,}{where}, {plural(episodes, 'episode')} from seed {first}")
    if isinstance(sink, Path):
        # Without a screen SDL complains about one it does not need.
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    # What an engine prints is for people; the one JSON document stays alone on standard output.
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        played = engine_of_run(playing).watch(playing, saved, episodes, first, sink)
    video = shown(sink) if isinstance(sink, Path) and sink.is_file() else None
    if as_json:
        rows = [episode.as_dict() for episode in played]
        document({"session": shown(best.path), "film": video, "episodes": rows, "exit": EXIT_DONE})
    else:
        say(*(f"  seed {each.seed}: score {each.score:g} in {plural(each.length, 'step')}" for each in played))
        if video:
            say(f"{'text' if video.endswith('.txt') else 'video'}: {video}")
    return EXIT_DONE


def _checkpoint_named(place: Path, which: str) -> tuple[Path, str]:
    """A path into a session's checkpoints names the session and which of them is meant."""
    from operant.run.layout import CHECKPOINTS_FOLDER

    if place.parent.name != CHECKPOINTS_FOLDER:
        return place, which
    return place.parent.parent, str(int(place.name)) if place.name.isdigit() else place.name


def _row_line(row: dict[str, Any]) -> str:
    from operant.report.episode_metrics import line
    from operant.report.formatting import score
    from operant.report.stats import Estimate

    parts = line({name: Estimate(**each) for name, each in row["parts"].items()})
    means = f"\n  means over episodes: {parts}" if parts else ""
    errors = f", {plural(row['errors'], 'answer')} without a score counted as 0" if row["errors"] else ""
    where = f" in {row['env']}" if row["env"] else ""
    return (
        f"{Path(row['session']).name} at frame {row['frames']:,}{where}: {score(row['score'])}  "
        f"over episodes [{score(row['low'])}, {score(row['high'])}]{errors}{means}"
    )


def _score_line(estimate: Estimate | None, rows: list[dict[str, Any]], sampled: bool) -> str:
    if estimate is None:
        return "score: none, every episode ended in an error"
    kind = "sampled" if sampled else "greedy"
    where = f" in {rows[0]['env']}" if rows[0]["env"] else ""
    return (
        f"score {estimate.text()} mean {kind} return{where} over {plural(len(rows), 'session')}, "
        f"{plural(rows[0]['episodes'], 'episode')} each from seed {rows[0]['first_seed']}"
    )


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _video_path(run: Run, checkpoint: Checkpoint, seed: int, episodes: int, env: str | None) -> Path:
    """Named after all that decides its content, so that only the same video is ever written over."""
    from operant.run.layout import MEDIA_FOLDER

    where = "_in_" + re.sub(r"[^\w.-]", "_", env) if env else ""
    return run.path / MEDIA_FOLDER / f"frame_{checkpoint.at.frames}_seed_{seed}_episodes_{episodes}{where}.gif"
