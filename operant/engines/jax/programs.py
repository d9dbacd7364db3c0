"""Which program trains and evaluates a spec: one that holds the environments too, or one around those of the host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from operant.engines.jax.episodes import FinishedEpisode
from operant.engines.jax.evaluation import Evaluator, load_policy
from operant.engines.jax.host.evaluation import HostEvaluator
from operant.engines.jax.host.program import HostProgram
from operant.engines.jax.learner import GREEDY, SAMPLED, Learner
from operant.engines.jax.learners import build_learner
from operant.engines.jax.platform import compiler_options
from operant.engines.jax.program import Program
from operant.spec.schema import Spec


def build_program(spec: Spec, lanes: int) -> Program | HostProgram:
    """The program of so many sessions like `spec`."""
    learner = build_learner(spec)
    if not learner.env.on_host:
        return Program(learner, lanes)
    assert lanes == 1, "sessions on the host are trained one by one"
    return HostProgram(learner)


def build_evaluator(learner: Learner, episodes: int) -> Evaluator | HostEvaluator:
    """What evaluates the policies of a learner, mostly for so many episodes."""
    options = compiler_options()
    return HostEvaluator(learner, options) if learner.env.on_host else Evaluator(learner, episodes, options)


def evaluate_checkpoint(
    spec: Spec, checkpoint: Path, episodes: int, seed: int, greedy: bool
) -> Iterator[FinishedEpisode]:
    """One episode for each of the seeds `seed`, `seed + 1`, ..."""
    learner, policy = load_policy(spec, checkpoint)
    evaluator = build_evaluator(learner, episodes)
    yield from evaluator.single(policy, learner.hyper(spec), seed, episodes, GREEDY if greedy else SAMPLED)
