"""The trainer: generate, score, learn, log, evaluate, save, until the budget is spent or a stop is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from operant.engines.language.alerts import Alerts
from operant.engines.language.build import TrainingContext
from operant.engines.language.config import supervised_of, text_of
from operant.engines.language.generation.generator import Sampling
from operant.engines.language.learning.learner import Report
from operant.engines.language.learning.sft import imitated, next_examples, warm_up
from operant.engines.language.learning.teacher_prompts import with_teacher_prompts
from operant.engines.language.rollouts.types import SEARCH, as_episodes, tree_episodes
from operant.engines.language.telemetry.heartbeat import TRAINER
from operant.run.episode import Episode, counted_scores
from operant.run.layout import PROMPTS_FILE
from operant.run.progress import Progress
from operant.run.session import Session

GRADING_SECRET = "grading_secret"
WORDY_GROUPS = 2
"""Groups of each round whose words are kept; of the others the scores."""


def run_session(session: Session, context: TrainingContext) -> None:
    """Train to the end of the session."""
    trainer = Trainer(session, context)
    trainer.start()
    train = trainer.train_round if supervised_of(context.spec) is None else trainer.imitate_batch
    while not session.done(trainer.at):
        train()
        trainer.record()
    if context.tracker.frames >= context.spec.env.max_frame:
        trainer.final_evaluation()
        context.discard_rollouts(all_of_them=True)


class Trainer:
    """One session under way."""

    def __init__(self, session: Session, context: TrainingContext) -> None:
        self.session = session
        self.context = context
        self.alerts = Alerts(context, session.event)
        context.learner.beat = context.telemetry.watchdog.heartbeat(TRAINER).beat
        self._asked = time.perf_counter()

    @property
    def at(self) -> Progress:
        """Where the session is; a frame is a completion, or in supervised learning an example."""
        tracker = self.context.tracker
        return Progress(tracker.frames, tracker.updates, tracker.episodes, tracker.tokens, self.session.seconds())

    def start(self) -> None:
        """Take up the newest checkpoint, or measure where the policy stands before it learns.

        A warm-up is done again at every attempt that needs the policy it ends with to compare with.
        """
        context, latest, warmup = self.context, self.session.latest, self.context.settings.warmup
        self._record_secret()
        warmed: dict[str, float] = {}
        if warmup and (latest is None or context.settings.kl != "none"):
            with self.session.phase("SFT warm-up") as advance:
                warmed = warm_up(context, warmup, advance)
        with self.session.phase("loading weights"):
            context.learner.snapshot_reference()
            if latest is not None:
                context.tracker.restore(context.learner.read(latest.path))
            context.publish()
        self._start_journal()
        if context.async_rollouts is not None:
            context.async_rollouts.start(context.tracker.position, context.tracker.owed)
        if latest is not None:
            return
        found = self.evaluate(context.spec.meta.eval_episodes)
        score = found.get("eval/score")
        if score is not None:
            self.session.anchor("start", score)
        self.session.log(self.at, {**warmed, **found})
        self.save(score)

    def _start_journal(self) -> None:
        """Begin this attempt in the prompt journal, and forget rollouts that the checkpoint covers."""
        journal, tracker, latest = self.context.telemetry.journal, self.context.tracker, self.session.latest
        if journal is not None:
            offset = 0 if latest is None else latest.offsets.get(PROMPTS_FILE, 0)
            journal.start(offset, tracker.position, tracker.owed, tracker.frames)
        self.context.discard_rollouts()

    def _record_secret(self) -> None:
        """Record which secret hidden seeds are drawn from, and say so if an earlier attempt had another."""
        now = next((mark for task in self.context.sampler.tasks if (mark := getattr(task, "fingerprint", None))), None)
        if now is None:
            return
        before = self.session.record_fact(GRADING_SECRET, now)
        if before is not None and before != now:
            told = f"hidden seeds now come from another secret ({now}, before {before}): scores before and after differ"
            self.session.event("secret", f"{told} in their cases. OPERANT_SECRET_FILE names the file of the first one")

    def train_round(self) -> None:
        """Generate, score and learn once."""
        context = self.context
        with self.session.phase("generating"):
            groups = context.gather()
        self.alerts.check_round(groups)
        at = self.at
        for index, group in enumerate(groups):
            rows = as_episodes(group, "train", None, at, words=index < WORDY_GROUPS)
            for episode in [*tree_episodes(group, "train", None, at), *rows]:
                self.session.episode(episode)
        begun = time.perf_counter()
        updating = self.session.phase("updating")
        with (
            updating,
            context.telemetry.watchdog.heartbeat(TRAINER).busy("training"),
            context.telemetry.trace.span("train", TRAINER),
        ):
            gold = imitated(context, [group.problem for group in groups])
            asked = with_teacher_prompts(context, groups)
            report = context.learner.learn(asked, at, context.spec.env.max_frame, gold)
        context.account_for(groups)
        context.worker.timing.seconds["train"] += time.perf_counter() - begun
        self.alerts.check_mismatch(report.means)
        self._count(report)

    def imitate_batch(self) -> None:
        """Take one step of supervised learning; a frame is an example."""
        context, tracker = self.context, self.context.tracker
        with (
            self.session.phase("updating"),
            context.telemetry.watchdog.heartbeat(TRAINER).busy("training"),
            context.telemetry.trace.span("train", TRAINER),
        ):
            samples = next_examples(context)
            report = context.learner.imitate(samples, self.at, context.spec.env.max_frame)
        tokens = sum(len(sample.places) for sample in samples)
        count = context.settings.batch_size
        tracker.frames, tracker.episodes = tracker.frames + count, tracker.episodes + count
        tracker.position, tracker.tokens = tracker.position + count, tracker.tokens + tokens
        context.worker.timing.tokens += tokens
        self._count(report)

    def _count(self, report: Report) -> None:
        """Count the updates of a round, publish the weights, and move the reference when it is due."""
        context, tracker, every = self.context, self.context.tracker, self.context.settings.reference_updates
        before = tracker.updates
        tracker.updates += report.steps
        tracker.add(report.means)
        if report.steps:
            tracker.add(context.publish())
        if every is not None and tracker.updates // every > before // every:
            context.learner.move_reference()

    def record(self) -> None:
        """Log, evaluate and save, each when it is due."""
        at, row, score = self.at, {}, None
        if self.session.due("log", at):
            row |= self.context.tracker.flush()
            row |= self._rates()
        if self.session.due("eval", at):
            row |= self.evaluate(self.context.spec.meta.eval_episodes)
            score = row.get("eval/score")
        if row:
            self.session.log(at, row)
            self.context.telemetry.trace.flush()
        if self.session.due("save", at):
            self.save(score)

    def save(self, score: float | None) -> None:
        """Publish a checkpoint."""
        self.context.save_positions()
        learner, facts = self.context.learner, self.context.tracker.state()
        self.session.save(self.at, lambda folder: learner.write(folder, facts), score)
        self.context.discard_rollouts()

    def evaluate(self, count: int) -> dict[str, float]:
        """The mean greedy score on held-out problems, if any has one, and how many have none; all are recorded."""
        meta = self.context.spec.meta
        with self.session.phase("evaluating"):
            episodes = self._recorded(evaluate_held_out(self.context, count, meta.eval_seed, True, "eval", self.at))
        self._asked = time.perf_counter()
        scores = counted_scores(each.score for each in episodes)
        mean = {"eval/score": float(np.mean(scores))} if scores else {}
        unscored, by_task = self._unscored(episodes, "eval"), self._by_task(episodes, "eval")
        return {**mean, **unscored, **by_task, **self._reward_parts(episodes)}

    def _recorded(self, episodes: Iterable[Episode]) -> list[Episode]:
        """The episodes, all of which are recorded, but for the attempts of which some are made."""
        found = list(episodes)
        for episode in found:
            self.session.episode(episode)
        return [episode for episode in found if episode.split != SEARCH]

    def _reward_parts(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """What the rewards of an evaluation are made of, where there are reward functions."""
        functions = text_of(self.context.spec).reward_functions
        names = ("verifier", *(each.part for each in functions)) if functions else ()
        scored = [each for each in episodes if each.score is not None]
        return {f"eval/parts/{name}": float(np.mean([each.parts[name] for each in scored])) for name in names if scored}

    def _by_task(self, episodes: Sequence[Episode], split: str) -> dict[str, float]:
        """The mean score of each task, where a mixture has several."""
        scores: dict[str, list[float | None]] = {}
        for each in episodes:
            scores.setdefault(each.env, []).append(each.score)
        if len(scores) < 2:
            return {}
        counted = {task: counted_scores(own) for task, own in scores.items()}
        return {f"{split}/score/{task}": float(np.mean(own)) for task, own in counted.items() if own}

    def _unscored(self, episodes: Sequence[Episode], split: str) -> dict[str, float]:
        """How many answers have no score; where there are any, an event says what that means."""
        unscored = [each for each in episodes if each.score is None]
        if unscored:
            means = "count as 0" if len(unscored) < len(episodes) else "are all there are, so that there is no mean"
            words = f"answers without a score: {len(unscored)} of {len(episodes)} ({split}); they {means}"
            self.session.event("errors", f"{words}; one of them: {unscored[0].error}")
        return {f"{split}/without_score": float(len(unscored))}

    def final_evaluation(self) -> None:
        """The score of the run: the final policy, greedily, on held-out problems."""
        meta = self.context.spec.meta
        with self.session.phase("evaluating"):
            episodes = self._recorded(
                evaluate_held_out(self.context, meta.final_episodes, meta.eval_seed, True, "final", self.at)
            )
        row, scores = self._unscored(episodes, "final"), counted_scores(each.score for each in episodes)
        row |= self._by_task(episodes, "final")
        if scores:
            row |= {"final/score": float(np.mean(scores)), "final/low": min(scores), "final/high": max(scores)}
            row["final/episodes"] = len(scores)
        self.session.log(self.at, row)

    def _rates(self) -> dict[str, float]:
        """Tokens per second since the last row, and which part of the time went where."""
        timing, now = self.context.worker.timing, time.perf_counter()
        seconds = max(now - self._asked, 1e-9)
        row = {"perf/tokens_per_second": timing.tokens / seconds}
        row |= {f"perf/{part}_share": spent / seconds for part, spent in timing.seconds.items()}
        timing.seconds.clear()
        timing.tokens, self._asked = 0, now
        return row


def evaluate_held_out(
    context: TrainingContext, count: int, seed: int, greedy: bool, split: str, at: Progress
) -> Iterator[Episode]:
    """Answer `count` held-out problems, chosen by `seed`, once each."""
    temperature = 0.0 if greedy else context.settings.temperature
    groups = context.worker.rollout(context.sampler.held_out(count, seed), Sampling(1, temperature, seed=seed))
    context.worker.timing.seconds.clear()
    context.worker.timing.tokens = 0
    for index, group in enumerate(groups):
        yield from tree_episodes(group, split, seed + index, at)
        yield from as_episodes(group, split, seed + index, at)
