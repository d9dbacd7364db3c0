"""From a spec to the parts of a session: policy, workers, problem sampler and learner."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from operant.engines.language.config import model_of, settings_of, sft_data_of, supervised_of, text_of
from operant.engines.language.distributed.fsdp import Scorer, shard_model
from operant.engines.language.distributed.process_group import follow_leader
from operant.engines.language.distributed.ranks import Ranks
from operant.engines.language.distributed.replicas import SharedGenerator, shared_generator
from operant.engines.language.distributed.weight_sync import trained_weights
from operant.engines.language.distributed.weight_sync_check import WeightSyncCheck
from operant.engines.language.distributed.workers import build_workers
from operant.engines.language.generation.activation_cache import ActivationCache, can_cache_activations, recording
from operant.engines.language.generation.build import build_generator, training_sampling
from operant.engines.language.generation.generator import Generator
from operant.engines.language.learning.distillation import SELF
from operant.engines.language.learning.learner import Learner
from operant.engines.language.learning.samples import chosen_groups
from operant.engines.language.policy.batching import Sample
from operant.engines.language.policy.build import build_policy
from operant.engines.language.policy.model import Policy, check_vocabulary, load_policy
from operant.engines.language.rollouts.moving_rewards import MovingReward
from operant.engines.language.rollouts.single_turn import RolloutWorker
from operant.engines.language.rollouts.store import RolloutStore
from operant.engines.language.rollouts.types import Group
from operant.engines.language.telemetry.heartbeat import TRAINER
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.engines.language.tracker import Tracker
from operant.envs.text.examples import ExampleSampler, read_examples
from operant.envs.text.mixture import Part, ProblemSampler, adapted
from operant.envs.text.tasks import make_task
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.language import ModelSpec
from operant.spec.settings.language_algorithms import OF_THE_BATCH, VerifiedAlgorithm
from operant.spec.settings.supervised import SftDataSpec

if TYPE_CHECKING:
    from operant.engines.language.distributed.async_rollouts import AsyncRollouts


@dataclass
class TrainingContext:
    """Everything that a session works with; with `async_rollouts`, rollouts run ahead of the trainer."""

    spec: Spec
    seeds: Seeds
    policy: Policy
    worker: RolloutWorker
    sampler: ProblemSampler
    learner: Learner
    async_rollouts: AsyncRollouts | None = None
    tracker: Tracker = field(default_factory=Tracker)
    demonstrations: dict[str, list[Sample]] = field(default_factory=dict)
    examples: ExampleSampler | None = None
    sync_check: WeightSyncCheck | None = None

    @property
    def telemetry(self) -> Telemetry:
        """The telemetry of the session."""
        return self.worker.telemetry

    @property
    def settings(self) -> VerifiedAlgorithm:
        """The settings of the algorithm."""
        return settings_of(self.spec)

    @property
    def sft_data(self) -> SftDataSpec | None:
        """The file of examples to imitate, if there is one."""
        return sft_data_of(self.spec)

    def gather(self) -> list[Group]:
        """The groups of one round; with `resample` more rounds, until enough groups have rewards that differ."""
        if self.async_rollouts is not None:
            return self._collected(self.async_rollouts)
        settings = self.settings
        wanted = settings.batch_size // settings.group_size
        groups = self._round(wanted)
        if settings.zero_variance == "resample":
            for _ in range(settings.resample_rounds):
                lacking = wanted - sum(group.has_signal for group in groups)
                if lacking <= 0:
                    break
                groups += self._round(lacking)
        return groups

    def _round(self, prompts: int) -> list[Group]:
        settings, tracker = self.settings, self.tracker
        problems = self.sampler.take(tracker.position, prompts)
        seed = self.seeds.integer("generate", tracker.position)
        sampling = training_sampling(settings, seed, text_of(self.spec).deadline)
        places = range(tracker.position, tracker.position + prompts)
        for place, problem in zip(places, problems, strict=True):
            self.telemetry.accounting.draw(place, problem.id)
        waiting = self.telemetry.watchdog.heartbeat(TRAINER).busy("waiting for a round", self.worker.lane)
        with waiting, recording(self.learner.activation_cache):
            groups = self.worker.rollout(problems, sampling, places, after=tracker.position)
        tracker.position += prompts
        groups = self._with_moving_rewards(groups)
        tracker.add_groups(groups, self.settings.credit in OF_THE_BATCH)
        return groups

    def _collected(self, async_rollouts: AsyncRollouts) -> list[Group]:
        """A round that was rolled out meanwhile."""
        tracker, timing, begun = self.tracker, self.worker.timing, time.perf_counter()
        groups = async_rollouts.collect(tracker.updates)
        while async_rollouts.sync_metrics:
            tracker.add(async_rollouts.sync_metrics.popleft())
        timing.seconds["wait"] += time.perf_counter() - begun
        groups = self._with_moving_rewards(groups)
        for answer in (answer for group in groups for answer in group.answers):
            timing.tokens += answer.length
            tracker.add({"rollout/staleness": float(tracker.updates - answer.version)})
        tracker.add_groups(groups, self.settings.credit in OF_THE_BATCH)
        return groups

    def _with_moving_rewards(self, groups: list[Group]) -> list[Group]:
        """The groups, rewarded by what earlier ones reached, where the spec asks for that."""
        moving = MovingReward(text_of(self.spec), self.settings.batch_size)
        return moving.rewarded(groups, self.tracker.reward_state) if moving.moves else groups

    def publish(self) -> dict[str, float]:
        """Let the generator have the weights as they are now, or a copy of them where it runs on its own.

        Returns the metrics of the check that they arrived, where one is due.
        """
        version = self.tracker.updates
        check = self.sync_check if self.tracker.rounds % self.settings.probe_every == 0 else None
        with self.telemetry.trace.span("sync", TRAINER, version=version):
            sent, metrics = None, {}
            if check is None:
                self.worker.generator.load({}, version)
            else:
                sent = check.send(version)
                metrics = check.sync(self.worker.generator, {}, sent)
            if self.async_rollouts is not None:
                copies = {name: weight.clone() for name, weight in trained_weights(self.policy).items()}
                self.async_rollouts.publish(copies, version, sent and replace(sent, policy=None))
            return metrics

    def account_for(self, groups: Sequence[Group]) -> None:
        """Account for the prompts of a round that was trained on."""
        trained = {id(group) for group in chosen_groups(groups, self.settings)}
        for group in groups:
            if group.place is not None:
                facts = {"completions": len(group.answers) + len(group.errors), "update": self.tracker.updates}
                if id(group) in trained:
                    self.telemetry.accounting.end(group.place, "trained", **facts)
                else:
                    self.telemetry.accounting.end(group.place, "dropped", reason=_why_dropped(group), **facts)

    def save_positions(self) -> None:
        """Note the position of the sampler, and which prompts a resumed run would owe."""
        if self.async_rollouts is not None:
            self.tracker.position, self.tracker.owed = self.async_rollouts.state()

    def discard_rollouts(self, all_of_them: bool = False) -> None:
        """Forget the rollouts of prompts that the newest checkpoint covers, or all, where none will be needed."""
        position, owed = self.tracker.position, set(self.tracker.owed)
        if self.worker.store is not None:
            self.worker.store.retain(lambda place: not all_of_them and (place >= position or place in owed))


def _why_dropped(group: Group) -> str:
    """Why a group was not trained on."""
    if not group.answers:
        return f"no answer could be graded: {group.errors[0] if group.errors else 'there is none'}"
    return "more groups than the batch takes" if group.has_signal else "all rewards are equal"


@contextmanager
def build_context(
    spec: Spec,
    seeds: Seeds,
    checkpoint: Path | None = None,
    telemetry: Telemetry | None = None,
    rollouts: Path | None = None,
) -> Iterator[TrainingContext]:
    """The parts that a spec asks for, with a checkpoint's weights where one is given; closed at the end.

    Only with telemetry are there asynchronous rollouts, and a cluster, where the spec asks for them. Rollouts are kept
    in the folder `rollouts` until a checkpoint covers them.
    """
    policy = build_policy(model_of(spec), seeds, spec.meta.device)
    learner = build_learner(spec, seeds, policy)
    if checkpoint is not None:
        from operant.engines.language.learning.checkpoint import read_weights

        read_weights(checkpoint, policy)
    sampler = build_sampler(spec, seeds)
    check = None if telemetry is None else build_sync_check(spec, policy, telemetry)
    with build_workers(spec, seeds, policy, sampler, telemetry, check) as workers:
        if checkpoint is not None:
            workers.worker.generator.load({}, 0)
        share_activations(workers.worker.generator, learner)
        # Activations are not stored: without them a resumed run that trains in turn would differ in the last bits.
        in_turn = workers.async_rollouts is None and learner.activation_cache is not None
        if rollouts is not None and not in_turn:
            workers.use(RolloutStore(rollouts))
        yield TrainingContext(
            spec,
            seeds,
            policy,
            workers.worker,
            sampler,
            learner,
            workers.async_rollouts,
            examples=build_examples(spec, seeds),
            sync_check=check,
        )


def build_sync_check(spec: Spec, policy: Policy, telemetry: Telemetry) -> WeightSyncCheck | None:
    """What checks that weights arrive, unless nothing is learnt from what is generated."""
    settings = settings_of(spec)
    if supervised_of(spec) is not None:
        return None
    return WeightSyncCheck(policy, settings.temperature, settings.probe_limit, telemetry.tell)


def share_activations(generator: Generator, learner: Learner) -> None:
    """Let the learner use what the generator computes, where they have the same weights and it pays."""
    from operant.engines.language.generation.torch_generator import TorchGenerator

    if isinstance(generator, TorchGenerator) and learner.ranks.alone and can_cache_activations(learner.policy.model):
        generator.activation_cache = learner.activation_cache = ActivationCache(learner.policy.model)


FOLLOWER = "from operant.engines.language.build import follow; follow()"
"""The code of the ranks other than 0."""


def follow() -> None:
    """Run a rank other than 0, until the leader has finished."""
    follow_leader(_members)


def _members(spec: Spec, seeds: Seeds) -> dict[str, object]:
    """What the leader calls on every rank, by class name."""
    policy = build_policy(model_of(spec), seeds, spec.meta.device)
    return {
        Learner.__name__: build_learner(spec, seeds, policy),
        SharedGenerator.__name__: shared_generator(build_generator(policy, model_of(spec)), Ranks()),
    }


def build_learner(spec: Spec, seeds: Seeds, policy: Policy) -> Learner:
    """Whoever trains `policy`; among several processes it trains a copy of which each has a slice."""
    settings, model, ranks = settings_of(spec), model_of(spec), Ranks()
    trained = policy if ranks.alone else build_policy(model, seeds, spec.meta.device)
    learner = Learner(trained, settings, model, seeds, ranks, policy)
    if settings.teacher == SELF:
        learner.teacher = learner.scorer
    elif settings.teacher is not None:
        learner.teacher, learner.teacher_policy = load_teacher(settings.teacher, trained, model, ranks)
    return learner


def load_teacher(source: str, policy: Policy, model: ModelSpec, ranks: Ranks) -> tuple[Scorer, Policy]:
    """A model that says how likely it finds the policy's completions, which it must read as the policy does."""
    device = next(policy.model.parameters()).device
    teacher = load_policy(source, dtype=model.dtype, device=device)
    check_vocabulary(source, teacher.tokenizer, policy.tokenizer)
    return shard_model(Scorer(teacher.model), ranks).eval().requires_grad_(False), teacher


def build_examples(spec: Spec, seeds: Seeds) -> ExampleSampler | None:
    """The examples to imitate, where a file of them is named."""
    data = sft_data_of(spec)
    if data is None:
        return None
    found = read_examples(data.path, data.prompt, data.completion, data.subset)
    return ExampleSampler(found, seeds.integer("examples"))


def build_sampler(spec: Spec, seeds: Seeds) -> ProblemSampler:
    """The problems to train on and to evaluate."""
    text = text_of(spec)
    adapt = partial(adapted, stop=text.stop, system=text.system, prefix=text.prefix)
    if not text.mixture:
        whole = Part(make_task(spec.env.name, text.arguments), order=text.order)
        return ProblemSampler([whole], text.mode, seeds.integer("problems"), adapt=adapt)
    parts = [
        Part(make_task(part.name, part.arguments, part.label), part.weight, part.count, part.order, part.weight_end)
        for part in text.mixture
    ]
    return ProblemSampler(parts, text.mode, seeds.integer("problems"), adapt=adapt, curriculum=text.curriculum)
