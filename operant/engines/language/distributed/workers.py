"""The workers of a session: generators and verifiers in this process, in threads beside the trainer, or on Ray."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from operant.engines.language.config import model_of, reward_data, settings_of, text_of
from operant.engines.language.distributed.async_rollouts import AsyncRollouts
from operant.engines.language.distributed.ranks import Ranks
from operant.engines.language.distributed.replicas import shared_generator
from operant.engines.language.distributed.weight_sync_check import WeightSyncCheck
from operant.engines.language.generation.build import build_generator
from operant.engines.language.generation.generator import Generator
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.model import Policy
from operant.engines.language.rollouts.multi_turn import attach_drivers, single_turn_tasks
from operant.engines.language.rollouts.rewards import RewardScorer
from operant.engines.language.rollouts.single_turn import RolloutWorker
from operant.engines.language.rollouts.store import RolloutStore
from operant.engines.language.rollouts.types import VerifierPool
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.envs.text.mixture import ProblemSampler
from operant.envs.text.pool import Verifiers
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


@dataclass(frozen=True)
class Workers:
    """The trainer's own rollout worker, and the asynchronous rollouts, if there are any."""

    worker: RolloutWorker
    async_rollouts: AsyncRollouts | None = None

    def use(self, store: RolloutStore) -> None:
        """Have rollouts of training kept in a store."""
        self.worker.store = store
        if self.async_rollouts is not None:
            self.async_rollouts.use(store)


@contextmanager
def build_workers(
    spec: Spec,
    seeds: Seeds,
    policy: Policy,
    sampler: ProblemSampler,
    telemetry: Telemetry | None,
    check: WeightSyncCheck | None = None,
) -> Iterator[Workers]:
    """The workers of a session; without telemetry it is not training, and everything is done here and in turn.

    Workers that run on their own let weights that they load be checked by `check`.
    """
    with ExitStack() as stack:
        if telemetry is None:
            yield Workers(_local_worker(spec, policy, sampler, Telemetry(), stack))
        elif spec.meta.cluster == "ray":
            yield _on_ray(spec, seeds, policy, sampler, telemetry, stack, check)
        else:
            worker = _local_worker(spec, policy, sampler, telemetry, stack)
            async_rollouts = None
            if settings_of(spec).staleness:
                ahead = _copied(spec, policy, worker.verifiers, telemetry, sampler)
                async_rollouts = _async_rollouts(spec, seeds, sampler, [ahead], telemetry, stack, check)
            yield Workers(worker, async_rollouts)


def _local_worker(
    spec: Spec, policy: Policy, sampler: ProblemSampler, telemetry: Telemetry, stack: ExitStack
) -> RolloutWorker:
    """Rollouts on the trainer's own weights."""
    text = text_of(spec)
    verifiers = Verifiers(single_turn_tasks(sampler.tasks), text.workers, text.seconds, reward_data(text))
    stack.callback(verifiers.close)
    generator = shared_generator(build_generator(policy, model_of(spec)), Ranks())
    stack.callback(generator.close)
    lane = "evaluator" if settings_of(spec).staleness else "generator"
    return _worker(spec, policy, generator, verifiers, telemetry, lane, sampler)


def _copied(
    spec: Spec, policy: Policy, verifiers: VerifierPool, telemetry: Telemetry, sampler: ProblemSampler
) -> RolloutWorker:
    """Rollouts on a copy of the weights, for a thread of their own."""
    own = copy.deepcopy(policy)
    generator = TorchGenerator(own, slots=model_of(spec).slots, graphs=False)
    return _worker(spec, own, generator, verifiers, telemetry, "generator", sampler)


def _on_ray(
    spec: Spec,
    seeds: Seeds,
    policy: Policy,
    sampler: ProblemSampler,
    telemetry: Telemetry,
    stack: ExitStack,
    check: WeightSyncCheck | None,
) -> Workers:
    """Rollouts by Ray actors; evaluation too, unless rollouts are asynchronous."""
    from operant.engines.language.distributed.ray_cluster import open_cluster
    from operant.engines.language.distributed.replicas import Replicas

    cluster = stack.enter_context(open_cluster(spec, telemetry))
    verifiers = cluster.verifiers([task.recipe for task in single_turn_tasks(sampler.tasks)])
    stack.callback(verifiers.close)
    generators = cluster.generators(spec, seeds)
    if not settings_of(spec).staleness:
        replicas = Replicas(generators, policy)
        stack.callback(replicas.close)
        return Workers(_worker(spec, policy, replicas, verifiers, telemetry, "generator", sampler))
    generator = build_generator(policy, model_of(spec))
    stack.callback(generator.close)
    ahead = [
        # A tokenizer serves one thread at a time.
        _worker(
            spec,
            replace(policy, tokenizer=copy.deepcopy(policy.tokenizer)),
            each,
            verifiers,
            telemetry,
            each.name,
            sampler,
        )
        for each in generators
    ]
    async_rollouts = _async_rollouts(spec, seeds, sampler, ahead, telemetry, stack, check)
    return Workers(_worker(spec, policy, generator, verifiers, telemetry, "evaluator", sampler), async_rollouts)


def _worker(
    spec: Spec,
    policy: Policy,
    generator: Generator,
    verifiers: VerifierPool,
    telemetry: Telemetry,
    lane: str,
    sampler: ProblemSampler,
) -> RolloutWorker:
    text, settings = text_of(spec), settings_of(spec)
    worker = RolloutWorker(
        policy, generator, verifiers, model_of(spec).template, text.max_tokens, settings.overlong, telemetry, lane
    )
    attach_drivers(worker, sampler.tasks, text.dialogue)
    if text.reward_functions:
        worker.rewards = RewardScorer(text.reward_functions, text.verifier_weight, verifiers)
    if hasattr(generator, "beat"):
        setattr(generator, "beat", worker.heartbeat.beat)  # noqa: B010 (the protocol does not ask for it)
    return worker


def _async_rollouts(
    spec: Spec,
    seeds: Seeds,
    sampler: ProblemSampler,
    workers: list[RolloutWorker],
    telemetry: Telemetry,
    stack: ExitStack,
    check: WeightSyncCheck | None,
) -> AsyncRollouts:
    deadline = text_of(spec).deadline
    async_rollouts = AsyncRollouts(sampler, seeds, settings_of(spec), workers, telemetry, deadline, check)
    stack.callback(async_rollouts.close)
    return async_rollouts
