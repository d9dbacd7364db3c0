"""The training loop of sessions that share one program: chunk, log, evaluate, save, until the budget or a stop.

Every session keeps its own directory, lock, checkpoints and rows. All lanes compute in every chunk;
a lane whose session waits for the others, or is not here, is restored to what it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from operant.engines.jax import codec
from operant.engines.jax.chunks import ChunkLength, ChunkRow, updates_left
from operant.engines.jax.devices import of_this_process
from operant.engines.jax.episodes import FinishedEpisode, mean_parts
from operant.engines.jax.evaluation import Evaluator
from operant.engines.jax.health import Health
from operant.engines.jax.host.evaluation import HostEvaluator
from operant.engines.jax.host.program import HostProgram
from operant.engines.jax.learner import GREEDY, TrainState
from operant.engines.jax.program import Program, advance, lane_of, stacked
from operant.engines.jax.tracker import Tracker
from operant.envs.functional.env import Continuous, Discrete
from operant.run.episode import Episode
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.run.session import Session
from operant.spec.schema import Spec


class Lane:
    """One session in its lane of the program."""

    def __init__(self, session: Session, index: int, spec: Spec, actions: Discrete | Continuous) -> None:
        self.session = session
        self.index = index
        self.spec = spec
        self.tracker = Tracker()
        self.health = Health(actions, session.event)

    @property
    def at(self) -> Progress:
        """Where the session is."""
        return self.at_second(self.session.seconds())

    def at_second(self, seconds: float) -> Progress:
        """Where it is, if that was reached after so many seconds."""
        return Progress(self.tracker.frames, self.tracker.updates, self.tracker.episodes, 0, seconds)

    def count(self, row: ChunkRow, frames: int, seconds: float) -> Progress:
        """Count a row, which ended after so many seconds and has `frames` frames for each update."""
        self.tracker.add(row.metrics, row.updates * frames, row.updates)
        at = self.at_second(seconds)
        self.record(row.episodes, "train", at)
        return at

    def next_row(self, at: Progress) -> dict[str, float | None]:
        """What the metric row at this place says of training."""
        row = self.tracker.flush()
        self.health.look(at, row)
        row["perf/frames_per_second"] = at.frames / at.seconds if at.seconds > 0 else None
        return row

    def record(self, ended: list[FinishedEpisode], split: str, at: Progress) -> None:
        """Record episodes."""
        for episode in ended:
            self.session.episode(as_episode(episode, self.spec.env.name, split, at))


@contextmanager
def in_phase(sessions: Sequence[Session], name: str) -> Iterator[None]:
    """All sessions are in the same phase."""
    with ExitStack() as stack:
        for session in sessions:
            stack.enter_context(session.phase(name))
        yield


class Trainer:
    """The lanes of one program and their states; other processes that share it are told what it does."""

    def __init__(
        self,
        program: Program | HostProgram,
        evaluator: Evaluator | HostEvaluator,
        lanes: list[Lane],
        tell: Callable[..., object] = lambda order, **arguments: None,
    ) -> None:
        self.program = program
        self._tell = tell
        self.evaluator = evaluator
        self.lanes = lanes
        by_index = {lane.index: lane for lane in lanes}
        # An empty lane computes as the first session does, and its results are dropped.
        settings = [by_index.get(i, lanes[0]).spec for i in range(program.lanes)]
        self.hyper = stacked([program.learner.hyper(each) for each in settings])
        self._is_compiled = False
        self._length = ChunkLength(program.most_rows)
        with self._phase("compiling"):
            self.states = self._start(by_index)

    def _phase(self, name: str) -> AbstractContextManager[None]:
        return in_phase([lane.session for lane in self.lanes], name)

    def _start(self, by_index: dict[int, Lane]) -> TrainState:
        seeds = [by_index.get(i, self.lanes[0]).session.seeds for i in range(self.program.lanes)]
        saved = {lane.index: lane.session.latest.path for lane in self.lanes if lane.session.latest is not None}
        states, restored = initial_states(self.program, seeds, saved)
        for index, (facts, env_state) in restored.items():
            by_index[index].tracker.restore(facts)
            self.program.restore_envs(env_state)
        return states

    def run(self) -> None:
        """Train every lane to the end of its session."""
        self.measure_random_baseline()
        while going := [lane for lane in self.lanes if not lane.session.done(lane.at)]:
            frames = min(lane.tracker.frames for lane in going)
            # Lanes differ in frames only after a kill between their saves; then those behind catch up first.
            now = [lane for lane in going if lane.tracker.frames == frames]
            target = min(lane.session.next_due(frames) for lane in now)
            program, rows = self.program, self._length.rows
            self.advance(now, updates_left(program.learner, program.row_updates, rows, frames, target))
            self.log_evaluate_save(now)
        over = [lane for lane in self.lanes if lane.tracker.frames >= lane.spec.env.max_frame]
        if over:
            self.final_evaluation(over)

    def advance(self, lanes: list[Lane], updates: int) -> None:
        """One chunk, whose results only `lanes` keep; all its rows are logged but the last."""
        moving = [lane.index for lane in lanes]
        self._tell("advance", updates=updates, moving=moving)
        began, seconds = time.perf_counter(), [lane.session.seconds() for lane in lanes]
        with nullcontext() if self._is_compiled else self._phase("compiling"):
            self.states, found = advance(self.program, self.states, self.hyper, updates, moving)
        if self._is_compiled:
            self._length.took(time.perf_counter() - began)
        self._is_compiled = True
        for lane, before in zip(lanes, seconds, strict=True):
            self._log_rows(lane, found[lane.index], before, updates)

    def _log_rows(self, lane: Lane, rows: list[ChunkRow], before: float, updates: int) -> None:
        """Count the rows of a chunk that began at second `before`, and log those that nothing else is due at."""
        taken, done = lane.session.seconds() - before, 0
        for number, row in enumerate(rows, 1):
            done += row.updates
            at = lane.count(row, self.program.learner.frames, before + taken * done / updates)
            if number < len(rows) and lane.session.due("log", at):
                lane.session.log(at, lane.next_row(at))

    def log_evaluate_save(self, lanes: list[Lane]) -> None:
        """Log, evaluate and save, each when it is due."""
        due = {kind: [lane for lane in lanes if lane.session.due(kind, lane.at)] for kind in ("log", "eval")}
        episodes = self.evaluate(due["eval"], "eval")
        # Copied whole and once: slicing a lane out of every array on the device would compile a program for each shape.
        saving = [lane for lane in lanes if lane.session.due("save", lane.at)]
        states = self._on_host() if saving else None
        for lane in lanes:
            at = lane.at
            row: dict[str, float | None] = {}
            score = None
            if lane in due["log"]:
                row |= lane.next_row(at)
            if lane in due["eval"]:
                ended = episodes[lane.index]
                score = float(np.mean([episode.score for episode in ended]))
                row |= {"eval/score": score, "eval/length": float(np.mean([episode.length for episode in ended]))}
                row |= mean_parts("eval", ended)
            if row:
                lane.session.log(at, row)
            if lane in saving:
                save(lane, lane_of(states, lane.index), self.program.env_state(), at, score)

    def _on_host(self) -> TrainState:
        self._tell("gather")
        return codec.to_host(self.program.whole(self.states))

    def evaluate(self, lanes: list[Lane], split: str) -> dict[int, list[FinishedEpisode]]:
        """Evaluate greedily on the fixed seeds and record the episodes; by lane."""
        if not lanes:
            return {}
        meta = lanes[0].spec.meta
        count = meta.final_episodes if split == "final" else meta.eval_episodes
        with self._phase("evaluating"):
            episodes = self.evaluator(of_this_process(self.states.policy), self.hyper, meta.eval_seed, count, GREEDY)
        for lane in lanes:
            lane.record(episodes[lane.index], split, lane.at)
        return dict(enumerate(episodes))

    def final_evaluation(self, lanes: list[Lane]) -> None:
        """The score of each run: the final policy, greedily, on the fixed seeds."""
        episodes = self.evaluate(lanes, "final")
        for lane in lanes:
            scores = [episode.score for episode in episodes[lane.index]]
            row = {"final/score": float(np.mean(scores)), "final/low": min(scores), "final/high": max(scores)}
            row |= mean_parts("final", episodes[lane.index])
            lane.session.log(lane.at, row | {"final/episodes": len(scores)})

    def measure_random_baseline(self) -> None:
        """The return of the uniformly random policy, for the sessions that lack it: the zero of strength metrics."""
        new = [lane for lane in self.lanes if "random" not in lane.session.anchors]
        if new:
            with self._phase("random play"):
                mean = self.evaluator.random_return(of_this_process(self.states.policy), self.hyper)
            for lane in new:
                lane.session.anchor("random", mean)


def initial_states(
    program: Program | HostProgram, seeds: Sequence[Seeds], checkpoints: Mapping[int, Path]
) -> tuple[TrainState, dict[int, tuple[dict[str, Any], dict[str, np.ndarray]]]]:
    """States of all lanes, of checkpoints where they have one; with what the host counts and its environments, if any.

    Without a checkpoint a lane is fresh, by its seeds.
    """
    fresh = program.start(seeds)
    if not checkpoints:
        return program.placed(fresh), {}
    whole, restored = program.whole(fresh), {}
    states = [lane_of(whole, i) for i in range(program.lanes)]
    for index, path in checkpoints.items():
        states[index], facts, env_state = codec.read(path, states[index])
        restored[index] = (facts, env_state)
    return program.placed(stacked(states)), restored


def save(lane: Lane, state: TrainState, env_state: dict[str, np.ndarray], at: Progress, score: float | None) -> None:
    """Publish a checkpoint of one lane, whose state is on the host."""
    facts = lane.tracker.state()
    lane.session.save(at, lambda folder: codec.write(folder, state, facts, env_state), score)


def as_episode(ended: FinishedEpisode, env: str, split: str, at: Progress) -> Episode:
    """The record of an episode that ended."""
    how = "terminated" if ended.terminated else "truncated"
    return Episode(env, split, ended.seed, at, ended.score, ended.length, how, parts=ended.parts)
