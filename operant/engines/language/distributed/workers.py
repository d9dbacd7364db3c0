"""Who writes and who judges: in this process, in threads beside the trainer, or on a cluster."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from operant.engines.language.build import build_generator, model_of, settings_of, text_of
from operant.engines.language.distributed.async_rollouts import Pipeline
from operant.engines.language.distributed.ranks import Ranks
from operant.engines.language.distributed.shared_generator import shared
from operant.engines.language.generation.generator import Generator
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.model import Policy
from operant.engines.language.rollouts.multi_turn import engage, one_turn_tasks
from operant.engines.language.rollouts.single_turn import Judges, Rounds
from operant.engines.language.telemetry.prompt_accounting import Witness
from operant.envs.text.mixture import Course
from operant.envs.text.pool import Verifiers
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


@dataclass(frozen=True)
class Crew:
    """The rounds that the trainer plays itself, and those that others play meanwhile, if any do."""

    rounds: Rounds
    pipeline: Pipeline | None = None


@contextmanager
def hire(spec: Spec, seeds: Seeds, policy: Policy, course: Course, witness: Witness | None) -> Iterator[Crew]:
    """The crew of a session; with no witness it is not training, and everything is done here and in turn."""
    with ExitStack() as stack:
        if witness is None:
            yield Crew(_local_rounds(spec, policy, course, Witness(), stack))
        elif spec.meta.cluster == "ray":
            yield _on_ray(spec, seeds, policy, course, witness, stack)
        else:
            rounds = _local_rounds(spec, policy, course, witness, stack)
            pipeline = None
            if settings_of(spec).staleness:
                writer = _copied(spec, policy, rounds.verifiers, witness, course)
                pipeline = _pipeline(spec, seeds, course, [writer], witness, stack)
            yield Crew(rounds, pipeline)


def _local_rounds(spec: Spec, policy: Policy, course: Course, witness: Witness, stack: ExitStack) -> Rounds:
    """Rounds on the trainer's own weights."""
    text = text_of(spec)
    verifiers = Verifiers(one_turn_tasks(course.tasks), text.workers, text.seconds)
    stack.callback(verifiers.close)
    generator = shared(build_generator(policy, model_of(spec)), Ranks())
    stack.callback(generator.close)
    lane = "examiner" if settings_of(spec).staleness else "generator"
    return _rounds(spec, policy, generator, verifiers, witness, lane, course)


def _copied(spec: Spec, policy: Policy, verifiers: Judges, witness: Witness, course: Course) -> Rounds:
    """Rounds on a copy of the weights, for a thread of their own."""
    own = copy.deepcopy(policy)
    generator = TorchGenerator(own, slots=model_of(spec).slots, graphs=False)
    return _rounds(spec, own, generator, verifiers, witness, "generator", course)


def _on_ray(spec: Spec, seeds: Seeds, policy: Policy, course: Course, witness: Witness, stack: ExitStack) -> Crew:
    """Rounds whose completions are written and judged by actors; examinations too, unless writers are ahead."""
    from operant.engines.language.distributed.ray_cluster import open_cluster
    from operant.engines.language.distributed.replicas import Replicas

    cluster = stack.enter_context(open_cluster(spec, witness))
    verifiers = cluster.judges([task.recipe for task in one_turn_tasks(course.tasks)])
    stack.callback(verifiers.close)
    writers = cluster.writers(spec, seeds)
    if not settings_of(spec).staleness:
        together = Replicas(writers, policy)
        stack.callback(together.close)
        return Crew(_rounds(spec, policy, together, verifiers, witness, "generator", course))
    generator = build_generator(policy, model_of(spec))
    stack.callback(generator.close)
    ahead = [
        # A tokenizer serves one thread at a time.
        _rounds(
            spec,
            replace(policy, tokenizer=copy.deepcopy(policy.tokenizer)),
            each,
            verifiers,
            witness,
            each.name,
            course,
        )
        for each in writers
    ]
    pipeline = _pipeline(spec, seeds, course, ahead, witness, stack)
    return Crew(_rounds(spec, policy, generator, verifiers, witness, "examiner", course), pipeline)


def _rounds(
    spec: Spec,
    policy: Policy,
    generator: Generator,
    verifiers: Judges,
    witness: Witness,
    lane: str,
    course: Course,
) -> Rounds:
    text, settings = text_of(spec), settings_of(spec)
    rounds = Rounds(
        policy, generator, verifiers, model_of(spec).template, text.max_tokens, settings.overlong, witness, lane
    )
    engage(rounds, course.tasks, text.dialogue)
    if hasattr(generator, "beat"):
        setattr(generator, "beat", rounds.pulse.beat)  # noqa: B010 (the protocol does not ask for it)
    return rounds


def _pipeline(
    spec: Spec, seeds: Seeds, course: Course, writers: list[Rounds], witness: Witness, stack: ExitStack
) -> Pipeline:
    pipeline = Pipeline(course, seeds, settings_of(spec), writers, witness, text_of(spec).deadline)
    stack.callback(pipeline.close)
    return pipeline
