"""What a session would cost: its batch sizes as text, real rounds as the measure, and what each part of one takes."""

from __future__ import annotations

import tempfile
import time
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.config import model_of, supervised_of, text_of
from operant.engines.language.distributed.weight_sync import deserialize, serialize, trained_weights
from operant.engines.language.generation.build import training_sampling
from operant.engines.language.learning import checkpoint as checkpoint_files
from operant.engines.language.learning.learner import Learner
from operant.engines.language.learning.sft import imitated, next_examples
from operant.engines.language.learning.teacher_prompts import with_teacher_prompts
from operant.engines.language.policy.build import prepare_torch
from operant.engines.language.rollouts.multi_turn import single_turn_tasks
from operant.envs.text.dialogue import DialogueTask
from operant.errors import UsageError
from operant.run.expense import Estimate
from operant.run.progress import Progress
from operant.run.rates import Call, Rates, fit_decoding
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

PROBE_SECONDS = 2.0
SLOW_SECONDS = 20.0  # of a first round: what gets warm in it is then too little to wait for a second
BYTES_PER_EPISODE = 240


def measure(spec: Spec) -> Estimate:
    """Build everything in memory, train for about two seconds, and scale up."""
    prepare_torch(spec, spec.meta.threads or 1)
    with build_context(spec, Seeds(spec.meta.seed)) as context:
        pace = _measured(context)
        trained = sum(weight.numel() for weight in context.learner.optimizer.weights)
        return Estimate(
            parameters=trained,
            lines=[*arithmetic(context.settings, spec), *_turns(context), *_shares(pace)],
            updates=updates(context.settings, spec.env.max_frame),
            frames_per_second=pace.frames / pace.seconds,
            seconds_per_session=spec.env.max_frame * pace.seconds / pace.frames,
            disk_bytes=_disk(context),
            tokens_per_second=pace.tokens / pace.seconds,
        )


def measure_rates(spec: Spec) -> tuple[Rates, list[str]]:
    """Build everything in memory, and measure each part by itself: what a plan of many machines is simulated from."""
    prepare_torch(spec, spec.meta.threads or 1)
    with build_context(spec, Seeds(spec.meta.seed)) as context:
        if single_turn_tasks(context.sampler.tasks) != list(context.sampler.tasks):
            raise UsageError("tasks of many turns are not simulated", place=spec.name, remedy="plan a task of one turn")
        context.learner.snapshot_reference()
        context = replace(context, learner=_eager(context.learner))
        _one_round(context)
        return _measured_rates(context)


def _measured_rates(context: TrainingContext) -> tuple[Rates, list[str]]:
    """A few prompts and then a whole round are generated and verified, and the round is learnt from."""
    settings, timing, calls, groups = context.settings, context.worker.timing, [], []
    prompts = settings.batch_size // settings.group_size
    for size in sorted({max(1, prompts // 8), prompts}):
        timing.seconds.clear()
        problems = context.sampler.take(context.tracker.position, size)
        groups = context.worker.rollout(problems, training_sampling(settings, size, None))
        tokens = sum(answer.length for group in groups for answer in group.answers)
        calls.append(Call(size * settings.group_size, tokens, timing.seconds["generate"]))
    lengths = [max(1, answer.length) for group in groups for answer in group.answers]
    if not lengths:
        raise UsageError(
            "no answer of a whole round was verified", place=context.spec.name, remedy="operant tasks validate"
        )
    begun, gold = time.perf_counter(), imitated(context, [group.problem for group in groups])
    context.learner.learn(with_teacher_prompts(context, groups), Progress(0, 0), context.spec.env.max_frame, gold)
    trained = time.perf_counter() - begun
    by_token, by_step, remarks = fit_decoding(calls, lengths, model_of(context.spec).slots)
    publish, load, weight_bytes = _hand_over_seconds(context)
    rates = Rates(
        token_seconds=by_token,
        step_seconds=by_step,
        train_token_seconds=trained / sum(lengths),
        verify_seconds=timing.seconds["verify"] * min(text_of(context.spec).workers, len(lengths)) / len(lengths),
        lengths=tuple(lengths),
        weight_bytes=weight_bytes,
        publish_seconds=publish,
        load_seconds=load,
    )
    return rates, remarks


def _hand_over_seconds(context: TrainingContext) -> tuple[float, float, int]:
    """Seconds to serialize the trained weights, and to load them, and their bytes."""
    weights = trained_weights(context.policy)
    begun = time.perf_counter()
    serialized = serialize(weights, 0)
    sent = time.perf_counter()
    context.worker.generator.load(deserialize(serialized), 0)
    return sent - begun, time.perf_counter() - sent, len(serialized.data)


def updates(settings: VerifiedAlgorithm, frames: int) -> int:
    """Gradient steps of a session in which no group is dropped; of SFT a batch is one of them."""
    worker = -(-frames // settings.batch_size)
    return worker * settings.training_epoch * (settings.batch_size // settings.step_size)


def arithmetic(settings: VerifiedAlgorithm, spec: Spec) -> list[str]:
    """What the batch sizes add up to; every number counts completions of the whole run."""
    if supervised_of(spec) is not None:
        steps = updates(settings, spec.env.max_frame)
        return [
            f"{spec.env.max_frame:,} frames (examples) = {steps:,} gradient steps of {settings.batch_size} examples"
        ]
    prompts = settings.batch_size // settings.group_size
    parts = settings.batch_size // settings.step_size
    lines = [
        f"a round: {prompts} prompts x {settings.group_size} completions = {settings.batch_size} completions (frames)",
        f"learnt in {settings.training_epoch} x {parts} = {settings.training_epoch * parts} gradient steps of "
        f"{settings.step_size} completions, in passes of at most {settings.pass_tokens:,} tokens",
        f"{spec.env.max_frame:,} frames = {-(-spec.env.max_frame // settings.batch_size):,} rounds, "
        f"at most {updates(settings, spec.env.max_frame):,} updates",
    ]
    if settings.warmup is not None:
        warmup = settings.warmup
        lines.insert(0, f"warm-up: {warmup.updates:,} gradient steps of {warmup.batch_size} gold answers")
    if settings.staleness:
        ahead = settings.staleness // settings.updates_per_round
        lines.append(
            f"written ahead: at most {ahead} x {prompts} = {ahead * prompts} prompts under way, by weights at most "
            f"{settings.staleness} updates old; ratios compare with the {settings.compares_with}'s log-probabilities"
        )
    longest = text_of(spec).max_tokens
    return lines if longest is None else [*lines, f"completions of at most {longest:,} tokens"]


def _turns(context: TrainingContext) -> list[str]:
    """What tasks of many turns come to."""
    settings = text_of(context.spec).dialogue
    most = [settings.turns or task.turns for task in context.sampler.tasks if isinstance(task, DialogueTask)]
    if not most:
        return []
    learnt = "each learnt as one sample" if settings.strategy == "interleaved" else "each turn learnt as a sample"
    return [f"rollouts of at most {max(most)} turns, {settings.concurrency} at once, {learnt}"]


@dataclass(frozen=True)
class Pace:
    """Completions, their tokens and the seconds of some rounds, and the seconds of their parts."""

    frames: int
    tokens: int
    seconds: float
    parts: dict[str, float]


def _measured(context: TrainingContext) -> Pace:
    """The pace of whole rounds in which every group is learnt from, once everything is warm."""
    context.learner.snapshot_reference()  # what a KL term costs belongs to a round
    context = replace(context, learner=_eager(context.learner))
    first = _timed(context, 0.0)
    return first if first.seconds > SLOW_SECONDS else _timed(context, PROBE_SECONDS)


def _timed(context: TrainingContext, least: float) -> Pace:
    """Rounds until so many seconds are over, one at least."""
    tracker, timing = context.tracker, context.worker.timing
    timing.seconds.clear()
    frames, tokens, start = tracker.frames, tracker.tokens, time.perf_counter()
    while tracker.frames == frames or time.perf_counter() - start < least:
        _one_round(context)
    seconds = time.perf_counter() - start
    return Pace(tracker.frames - frames, tracker.tokens - tokens, seconds, dict(timing.seconds))


def _shares(pace: Pace) -> list[str]:
    """Where the time of a round goes; the rest is training."""
    if not pace.parts:
        return []
    parts = {**pace.parts, "train": max(0.0, pace.seconds - sum(pace.parts.values()))}
    told = ", ".join(f"{part} {seconds / pace.seconds:.0%}" for part, seconds in parts.items())
    untrained = "; a policy that has learnt to act gives the world more to do" if "world" in parts else ""
    return [f"time of a round: {told}{untrained}"]


def _eager(learner: Learner) -> Learner:
    """The same learner, but groups whose rewards are all equal are learnt from too."""
    eager = copy(learner)
    eager.settings = learner.settings.model_copy(update={"zero_variance": "keep"})
    eager.computes_all = True
    return eager


def _one_round(context: TrainingContext) -> None:
    tracker, budget = context.tracker, context.spec.env.max_frame
    if supervised_of(context.spec) is not None:
        samples = next_examples(context)
        context.learner.imitate(samples, Progress(tracker.frames, tracker.updates), budget)
        tracker.tokens += sum(len(sample.places) for sample in samples)
        tracker.frames, tracker.updates = tracker.frames + context.settings.batch_size, tracker.updates + 1
        return
    groups = with_teacher_prompts(context, context.gather())
    gold = imitated(context, [group.problem for group in groups])
    report = context.learner.learn(groups, Progress(tracker.frames, tracker.updates), budget, gold)
    context.tracker.updates += report.steps
    context.worker.generator.load({}, context.tracker.updates)


def _disk(context: TrainingContext) -> int:
    """Bytes of one finished session: kept checkpoints and episodes."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint_files.write(Path(folder), context.policy, context.learner.optimizer, context.tracker.state())
        one = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    meta, frames = context.spec.meta, context.spec.env.max_frame
    evaluated = meta.eval_episodes * frames / meta.eval_frequency + meta.final_episodes
    return int(one * (meta.keep_checkpoints + 1) + (frames + evaluated) * BYTES_PER_EPISODE)
