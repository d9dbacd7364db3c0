"""The course of a session: iterate, log, evaluate, save, until the budget is spent or a stop is asked for."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np
from torch import nn

from operant.engines.torch.actor import Actor
from operant.engines.torch.checkpoint import Snapshot
from operant.engines.torch.tracker import Tracker
from operant.engines.torch.update_counts import UpdateCounts
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import Ended
from operant.envs.vector.evaluation import play, random_return
from operant.run.episode import Episode
from operant.run.progress import Progress
from operant.run.session import Session
from operant.spec.schema import Spec


class Learner(Protocol):
    """What the loop, evaluation and `operant check` need of an algorithm; everything else is in its own file.

    A learner is made as `Learner(spec, seeds, device)`: all its randomness comes from named streams of `seeds`, and
    `torch.manual_seed(seeds.integer("init"))` comes just before its network. The loop then calls `iterate` until the
    budget is spent, plays `actor` in evaluations, and keeps in checkpoints what `snapshot` holds: for an exact resume
    that is everything that changes while it learns. A policy is read from a checkpoint by `build_net` and
    `build_actor`, without a learner.
    """

    spec: Spec
    tracker: Tracker
    actor: Actor
    snapshot: Snapshot

    @property
    def net(self) -> nn.Module:
        """The network that learns."""
        ...

    @staticmethod
    def build_net(spec: Spec, obs_shape: tuple[int, ...], actions: ActionMap, /) -> nn.Module:
        """A fresh network to act with, for these observations and actions; it is `net` in the checkpoint's policy."""
        ...

    @staticmethod
    def build_actor(spec: Spec, net: Any, obs_shape: tuple[int, ...], actions: ActionMap, /) -> Actor:
        """The actor that plays `net`, with its weights as they are at each call."""
        ...

    def iterate(self) -> list[Ended]:
        """Collect and learn once, counting in `tracker`; returns the training episodes that ended."""
        ...

    def update_counts(self) -> UpdateCounts:
        """What a whole session adds up to."""
        ...


def run_session(session: Session, learner: Learner) -> None:
    """Train `learner` to the end of the session."""
    if session.latest is not None:
        with session.phase("loading checkpoint"):
            learner.snapshot.read(session.latest.path)
    else:
        with session.phase("random play"):
            anchor = random_return(learner.spec.env)
        session.anchor("random", anchor)
    at = progress(session, learner)
    # The first update of a compiled network waits for its compiler; others take milliseconds.
    first = session.phase("compiling") if learner.spec.meta.compile else nullcontext()
    while not session.done(at):
        with first:
            over = learner.iterate()
        first = nullcontext()
        at = progress(session, learner)
        for ended in over:
            session.episode(as_episode(ended, learner.spec.env.name, "train", at))
        keep_record(session, learner, at)
    if at.frames >= learner.spec.env.max_frame:
        final_evaluation(session, learner, at)


def progress(session: Session, learner: Learner) -> Progress:
    """Where the learner is."""
    tracker = learner.tracker
    return Progress(tracker.frames, tracker.updates, tracker.episodes, 0, session.seconds())


def keep_record(session: Session, learner: Learner, at: Progress) -> None:
    """Log, evaluate and save, each when it is due."""
    row: dict[str, float | None] = {}
    score = None
    if session.due("log", at):
        row |= learner.tracker.flush()
        row["perf/frames_per_second"] = at.frames / at.seconds if at.seconds > 0 else None
    if session.due("eval", at):
        episodes = evaluate_now(session, learner, at, "eval", learner.spec.meta.eval_episodes)
        score = float(np.mean([e.score for e in episodes]))
        row |= {"eval/score": score, "eval/length": float(np.mean([e.length for e in episodes]))}
    if row:
        session.log(at, row)
    if session.due("save", at):
        session.save(at, learner.snapshot.write, score)


def final_evaluation(session: Session, learner: Learner, at: Progress) -> None:
    """The score of the run: the final policy, greedily, on the fixed seeds."""
    episodes = evaluate_now(session, learner, at, "final", learner.spec.meta.final_episodes)
    scores = [e.score for e in episodes]
    row = {"final/score": float(np.mean(scores)), "final/low": min(scores), "final/high": max(scores)}
    session.log(at, row | {"final/episodes": len(scores)})


def evaluate_now(session: Session, learner: Learner, at: Progress, split: str, count: int) -> list[Ended]:
    """Play greedily and record the episodes."""
    spec = learner.spec
    seed = spec.meta.eval_seed
    with session.phase("evaluating"):
        episodes = sorted(play(spec.env, learner.actor.player(seed), count, seed), key=lambda e: e.seed)
    for ended in episodes:
        session.episode(as_episode(ended, spec.env.name, split, at))
    return episodes


def as_episode(ended: Ended, env: str, split: str, at: Progress) -> Episode:
    """The record of an episode that ended."""
    how = "terminated" if ended.terminated else "truncated"
    return Episode(env, split, ended.seed, at, ended.score, ended.length, how)
