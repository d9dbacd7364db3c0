"""What a session would cost: the arithmetic of its batches in words, and real rounds as the measure."""

from __future__ import annotations

import tempfile
import time
from copy import copy
from dataclasses import replace
from pathlib import Path

from operant.engines.language.build import Lab, build_lab, prepare_torch, text_of
from operant.engines.language.learning import checkpoint as codec
from operant.engines.language.learning.learner import Learner
from operant.envs.text.dialogue import DialogueTask
from operant.run.expense import Estimate
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

PROBE_SECONDS = 2.0
BYTES_PER_EPISODE = 240


def measure(spec: Spec) -> Estimate:
    """Build everything in memory, train for about two seconds, and scale up."""
    prepare_torch(spec, spec.meta.threads or 1)
    with build_lab(spec, Seeds(spec.meta.seed)) as lab:
        rate = _frames_per_second(lab)
        trained = sum(weight.numel() for weight in lab.learner.optimiser.weights)
        return Estimate(
            parameters=trained,
            lines=[*arithmetic(lab.settings, spec), *_turns(lab)],
            updates=updates(lab.settings, spec.env.max_frame),
            frames_per_second=rate,
            seconds_per_session=spec.env.max_frame / rate,
            disk_bytes=_disk(lab),
        )


def updates(settings: VerifiedAlgorithm, frames: int) -> int:
    """Gradient steps of a session in which no group is dropped."""
    rounds = -(-frames // settings.batch_size)
    return rounds * settings.training_epoch * (settings.batch_size // settings.step_size)


def arithmetic(settings: VerifiedAlgorithm, spec: Spec) -> list[str]:
    """What the batch sizes add up to; every number counts completions of the whole run."""
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


def _turns(lab: Lab) -> list[str]:
    """What tasks of many turns come to."""
    settings = text_of(lab.spec).dialogue
    most = [settings.turns or task.turns for task in lab.course.tasks if isinstance(task, DialogueTask)]
    if not most:
        return []
    learnt = "each learnt as one sample" if settings.strategy == "interleaved" else "each turn learnt as a sample"
    return [f"rollouts of at most {max(most)} turns, {settings.concurrency} at once, {learnt}"]


def _frames_per_second(lab: Lab) -> float:
    """The rate of whole rounds in which every group is learnt from, once everything is warm."""
    lab = replace(lab, learner=_eager(lab.learner))
    _one_round(lab)
    first, start = lab.tracker.frames, time.perf_counter()
    while time.perf_counter() - start < PROBE_SECONDS:
        _one_round(lab)
    return (lab.tracker.frames - first) / (time.perf_counter() - start)


def _eager(learner: Learner) -> Learner:
    """The same learner, but groups whose rewards are all equal are learnt from too."""
    eager = copy(learner)
    eager.settings = learner.settings.model_copy(update={"zero_variance": "keep"})
    eager.computes_all = True
    return eager


def _one_round(lab: Lab) -> None:
    groups = lab.gather()
    report = lab.learner.learn(groups, Progress(lab.tracker.frames, lab.tracker.updates), lab.spec.env.max_frame)
    lab.tracker.updates += report.steps
    lab.rounds.generator.load({}, lab.tracker.updates)


def _disk(lab: Lab) -> int:
    """Bytes of one finished session: kept checkpoints and episodes."""
    with tempfile.TemporaryDirectory() as folder:
        codec.write(Path(folder), lab.policy, lab.learner.optimiser, lab.tracker.state())
        one = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    meta, frames = lab.spec.meta, lab.spec.env.max_frame
    examined = meta.eval_episodes * frames / meta.eval_frequency + meta.final_episodes
    return int(one * (meta.keep_checkpoints + 1) + (frames + examined) * BYTES_PER_EPISODE)
