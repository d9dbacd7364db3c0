"""A run as one HTML file: curves, episodes with video, replay or transcript, alerts, provenance and spec."""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path

from operant.api.policy import engine_of_run
from operant.api.runs import AnyRun, Experiment, best_score, choose_checkpoint, find_experiment, open, open_trial
from operant.errors import OperantError, UsageError
from operant.report.page.content import Media, gather
from operant.report.page.document import render
from operant.report.search_table import search_rows, settings_text
from operant.run.layout import MEDIA_FOLDER, SEARCH_FILE, shown, trial_paths
from operant.run.run import Run, find_sessions
from operant.spec.settings.algorithms import resume_kind
from operant.spec.stored import stored

VIDEO_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}
MOST_BYTES = 25_000_000


def write_report(
    run: AnyRun, out: str | Path, /, *, video: bool = True, episodes: int = 1, root: str | Path = "runs"
) -> Path:
    """Write a run as one self-contained HTML file, which opens offline; a file that is there is not overwritten.

    Of several trials the best is shown in full. `video` plays `episodes` episodes of the best policy where no video
    of it is kept yet.
    """
    file = Path(out)
    if file.exists():
        cause = "the file exists already, and nothing is ever overwritten"
        raise UsageError(cause, place=shown(file), remedy=f"another name, or remove it first: rm {shown(file)}")
    opened = open(run, root) if isinstance(run, str | Path) else run
    experiment = find_experiment(opened)
    trial = _best_trial(opened)
    sessions = find_sessions(trial)
    media = _media(max(sessions, key=best_score), episodes) if video else Media()
    content = gather(experiment, trial, media, _settings(experiment), resume_kind(sessions[0].spec))
    try:
        with file.open("x", encoding="utf-8") as page:
            page.write(render(content))
    except OSError as fault:
        raise UsageError(f"the file cannot be written: {fault.strerror}", place=shown(file)) from None
    return file


def _best_trial(opened: AnyRun) -> Path:
    """The trial that is shown in full: the one that was named, of a search the best, else the one of the best score."""
    if not isinstance(opened, Experiment) or (opened.path / SEARCH_FILE).is_file():
        return open_trial(opened).path
    scored = [(trial.score, trial.path) for trial in opened.trials]
    return max(scored, key=lambda each: each[0].point if each[0] else float("-inf"))[1]


def _settings(experiment: Path) -> dict[str, str]:
    """What distinguishes the trials of a search."""
    if not (experiment / SEARCH_FILE).is_file() or len(trial_paths(experiment)) < 2:
        return {}
    return {row.path.name: settings_text(row.settings) for row in search_rows(experiment)}


def _media(run: Run, episodes: int) -> Media:
    """A replay or a video of the best policy; where there can be none, the reason."""
    if run.spec.get("agent", {}).get("model") is not None:
        return Media()
    try:
        return _kept_video(run) or _rendered(run, episodes)
    except (OperantError, OSError) as problem:
        cause = problem.cause if isinstance(problem, OperantError) else str(problem)
        return Media(note=f"There is no video: {cause}.")


def _kept_video(run: Run) -> Media | None:
    """The newest video that `operant watch` has made, unless the game has replays, which show more."""
    if _has_replays(run):
        return None
    files = [file for file in (run.path / MEDIA_FOLDER).glob("*") if file.suffix in VIDEO_TYPES]
    fitting = [file for file in files if 0 < file.stat().st_size <= MOST_BYTES]
    newest = max(fitting, key=lambda file: file.stat().st_mtime, default=None)
    return None if newest is None else _video(newest, f"{run.path.name}, {newest.stem.replace('_', ' ')}")


def _rendered(run: Run, episodes: int) -> Media:
    """Let the best checkpoint play, as `operant watch` does."""
    saved = choose_checkpoint(run, "best")
    seed = int(run.spec["meta"].get("eval_seed", 0))
    # Without a screen SDL complains about one it does not need.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    with tempfile.TemporaryDirectory(prefix="operant-report-") as folder:
        sink = Path(folder) / ("replay.html" if _has_replays(run) else "video.mp4")
        played = engine_of_run(run).watch(run, saved, episodes, seed, sink)
        scores = ", ".join(f"{each.score:g}" for each in played if each.score is not None)
        caption = f"{run.path.name} at frame {saved.at.frames:,}, seed {seed}: score {scores}"
        if sink.suffix == ".html":
            return Media(caption, replay=sink.read_text(encoding="utf-8"))
        if sink.stat().st_size > MOST_BYTES:
            return Media(note=f"the video is larger than {MOST_BYTES // 10**6} MB; operant watch {shown(run.path)}")
        return _video(sink, caption)


def _has_replays(run: Run) -> bool:
    from operant.envs.watch import replays_of

    return replays_of(stored(run.spec).env.name, Path("replay.html")) is not None


def _video(file: Path, caption: str) -> Media:
    kind = VIDEO_TYPES[file.suffix]
    return Media(caption, video=f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}", kind=kind)
