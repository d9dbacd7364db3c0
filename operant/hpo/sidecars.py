"""The processes beside a search, which never touch it: the upload of `meta.sync`, and the trackers of `meta.track`."""

from __future__ import annotations

from collections.abc import Callable

from operant.errors import RunError
from operant.hpo.runner import Work
from operant.hpo.study import Study
from operant.launch.sync_process import start_sync
from operant.run.layout import RUN_FILE, session_paths, trial_paths
from operant.run.run import Experiment, Run
from operant.spec.settings.trackers import TrackerSpec
from operant.spec.stored import stored_trackers
from operant.trackers.position import read_positions
from operant.trackers.start import TrackerProcesses


class Sidecars:
    """The upload of a search while a worker of it lives, and the trackers of each job while it trains."""

    def __init__(self, study: Study, report: Callable[[str], None]) -> None:
        self._report = report
        self._trackers = self._stored_trackers(study)
        self._following: dict[int, TrackerProcesses] = {}
        self._catch_up(study)
        self._sync = start_sync(study.path, study.spec.meta.model_dump(mode="json"))

    def _stored_trackers(self, study: Study) -> tuple[TrackerSpec, ...]:
        """Those of its folder: the spec of a study leaves out the trackers of other packages."""
        try:
            return stored_trackers(Experiment(study.path).spec)
        except RunError as problem:
            self._report(f"track: {problem.cause}")
            return ()

    def _catch_up(self, study: Study) -> None:
        """Let the trackers send what those of an earlier worker, which ended with it, have not sent."""
        paths = [path for trial in trial_paths(study.path) for path in session_paths(trial) if self._trackers]
        runs = [Run.open(path) for path in paths if (path / RUN_FILE).is_file()]
        left = [run for run in runs if run.attempts and run.state != "running" and not self._is_tracked(run)]
        if left:
            TrackerProcesses(left, self._trackers).finish(0)

    def _is_tracked(self, run: Run) -> bool:
        positions = read_positions(run.path)
        return all(each.name in positions and positions[each.name].state == "complete" for each in self._trackers)

    def begin(self, work: Work) -> None:
        """Let the trackers follow the sessions of a job."""
        if self._trackers:
            self._following[work.number] = TrackerProcesses(work.runs, self._trackers)

    def end(self, work: Work) -> None:
        """The job trains no more; its trackers send what they have not sent, and end by themselves."""
        following = self._following.pop(work.number, None)
        if following is not None:
            self._tell_failures(following)
            following.finish(0)

    def advance(self) -> None:
        """Start again what was killed, and say what went wrong."""
        if self._sync is not None:
            self._sync.tend()
        for following in self._following.values():
            following.advance()
            self._tell_failures(following)

    def _tell_failures(self, following: TrackerProcesses) -> None:
        for line in following.news():
            self._report(f"{following.trial} {line}")

    def finish(self, leave: Callable[[], bool]) -> None:
        """Wait until everything is uploaded, unless `leave` says not to."""
        for following in self._following.values():
            following.finish(0)
        if self._sync is not None:
            self._sync.finish(leave)
