"""From a spec to the parts of a session: policy, generator, judges, problems and learner."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from operant.engines.language.distributed.fsdp import Scorer, spread
from operant.engines.language.distributed.ranks import Ranks
from operant.engines.language.distributed.weight_sync import trained_weights
from operant.engines.language.generation.activation_cache import Recall, can_recall, listening
from operant.engines.language.generation.generator import Generator, Sampling
from operant.engines.language.learning.learner import Learner
from operant.engines.language.learning.samples import chosen_groups
from operant.engines.language.policy.batching import Sample
from operant.engines.language.policy.model import Policy, check_vocabulary, load_policy
from operant.engines.language.policy.tiny import TinySizes
from operant.engines.language.rollouts.single_turn import Group, Rounds
from operant.engines.language.telemetry.heartbeat import TRAINER
from operant.engines.language.telemetry.prompt_accounting import Witness
from operant.engines.language.tracker import Tracker
from operant.envs.text.mixture import Course, Part
from operant.envs.text.tasks import make_task
from operant.errors import UsageError
from operant.run.heap import keep_large_blocks
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.language import LoraSpec, ModelSpec, TextSpec
from operant.spec.settings.language_algorithms import OF_THE_BATCH, VerifiedAlgorithm

if TYPE_CHECKING:
    from operant.engines.language.distributed.async_rollouts import Pipeline


@dataclass
class Lab:
    """Everything that a session works with; with a pipeline, rounds are played ahead of the trainer."""

    spec: Spec
    seeds: Seeds
    policy: Policy
    rounds: Rounds
    course: Course
    learner: Learner
    pipeline: Pipeline | None = None
    tracker: Tracker = field(default_factory=Tracker)
    demonstrations: dict[str, list[Sample]] = field(default_factory=dict)

    @property
    def witness(self) -> Witness:
        """Who looks on."""
        return self.rounds.witness

    @property
    def settings(self) -> VerifiedAlgorithm:
        """The settings of the algorithm."""
        return settings_of(self.spec)

    def gather(self) -> list[Group]:
        """The groups of one round; with `resample` more rounds, until enough groups have rewards that differ."""
        if self.pipeline is not None:
            return self._collected(self.pipeline)
        settings = self.settings
        wanted = settings.batch_size // settings.group_size
        groups = self._round(wanted)
        if settings.zero_variance == "resample":
            for _ in range(settings.resample_rounds):
                lacking = wanted - sum(group.teaches for group in groups)
                if lacking <= 0:
                    break
                groups += self._round(lacking)
        return groups

    def _round(self, prompts: int) -> list[Group]:
        settings, tracker = self.settings, self.tracker
        problems = self.course.take(tracker.position, prompts)
        seed = self.seeds.integer("generate", tracker.position)
        deadline = text_of(self.spec).deadline
        sampling = Sampling(settings.group_size, settings.temperature, settings.top_p, settings.top_k, seed, deadline)
        places = range(tracker.position, tracker.position + prompts)
        for place, problem in zip(places, problems, strict=True):
            self.witness.ledger.take(place, problem.id)
        waiting = self.witness.watch.pulse(TRAINER).busy("waiting for a round", self.rounds.lane)
        with waiting, listening(self.learner.recall):
            groups = self.rounds.play(problems, sampling, places)
        tracker.position += prompts
        tracker.add_groups(groups, self.settings.credit in OF_THE_BATCH)
        return groups

    def _collected(self, pipeline: Pipeline) -> list[Group]:
        """A round that was played meanwhile."""
        tracker, timing, begun = self.tracker, self.rounds.timing, time.perf_counter()
        groups = pipeline.collect(tracker.updates)
        timing.seconds["wait"] += time.perf_counter() - begun
        for answer in (answer for group in groups for answer in group.answers):
            timing.tokens += answer.length
            tracker.add({"rollout/staleness": float(tracker.updates - answer.version)})
        tracker.add_groups(groups, self.settings.credit in OF_THE_BATCH)
        return groups

    def publish(self) -> None:
        """Let the generator have the weights as they are now, or a copy of them where it runs on its own."""
        version = self.tracker.updates
        with self.witness.trace.span("sync", TRAINER, version=version):
            self.rounds.generator.load({}, version)
            if self.pipeline is not None:
                copies = {name: weight.clone() for name, weight in trained_weights(self.policy).items()}
                self.pipeline.publish(copies, version)

    def settle(self, groups: Sequence[Group]) -> None:
        """Account for the prompts of a round that was learnt from."""
        learnt = {id(group) for group in chosen_groups(groups, self.settings)}
        for group in groups:
            if group.place is not None:
                fate = "learnt" if id(group) in learnt else "dropped" if group.answers else "failed"
                self.witness.ledger.end(group.place, fate)

    def remember_places(self) -> None:
        """Note where the course is, and which of its prompts a resumed run would owe."""
        if self.pipeline is not None:
            self.tracker.position, self.tracker.owed = self.pipeline.state()


@contextmanager
def build_lab(
    spec: Spec, seeds: Seeds, checkpoint: Path | None = None, witness: Witness | None = None
) -> Iterator[Lab]:
    """The parts that a spec asks for, with a checkpoint's weights where one is given; closed at the end.

    Only with a witness are there writers ahead of the trainer, and a cluster, where the spec asks for them.
    """
    from operant.engines.language.distributed.workers import hire

    policy = build_policy(model_of(spec), seeds, spec.meta.device)
    learner = build_learner(spec, seeds, policy)
    if checkpoint is not None:
        from operant.engines.language.learning.checkpoint import read_weights

        read_weights(checkpoint, policy)
    course = build_course(spec, seeds)
    with hire(spec, seeds, policy, course, witness) as crew:
        if checkpoint is not None:
            crew.rounds.generator.load({}, 0)
        let_recall(crew.rounds.generator, learner)
        yield Lab(spec, seeds, policy, crew.rounds, course, learner, crew.pipeline)


def let_recall(generator: Generator, learner: Learner) -> None:
    """Let the learner use what the generator computes, where they have the same weights and it pays."""
    from operant.engines.language.generation.torch_generator import TorchGenerator

    if isinstance(generator, TorchGenerator) and learner.ranks.alone and can_recall(learner.policy.model):
        generator.recall = learner.recall = Recall(learner.policy.model)


def build_learner(spec: Spec, seeds: Seeds, policy: Policy) -> Learner:
    """Whoever trains `policy`; among several processes it trains a copy of which each has a slice."""
    settings, model, ranks = settings_of(spec), model_of(spec), Ranks()
    trained = policy if ranks.alone else build_policy(model, seeds, spec.meta.device)
    learner = Learner(trained, settings, model, seeds, ranks, policy)
    if settings.teacher is not None:
        learner.teacher = load_teacher(settings.teacher, trained, model, ranks)
    return learner


def load_teacher(source: str, policy: Policy, model: ModelSpec, ranks: Ranks) -> Scorer:
    """A model that says how likely it finds the policy's completions, which it must read as the policy does."""
    device = next(policy.model.parameters()).device
    teacher = load_policy(source, dtype=model.dtype, device=device)
    check_vocabulary(source, teacher.tokenizer, policy.tokenizer)
    return spread(Scorer(teacher.model), ranks).eval().requires_grad_(False)


def build_policy(model: ModelSpec, seeds: Seeds, device: str) -> Policy:
    """The language model."""
    tiny = TinySizes(model.tiny.layers, model.tiny.width, model.tiny.heads, model.tiny.context)
    return load_policy(
        model.source,
        dtype=model.dtype,
        device=choose_device(device),
        seed=seeds.integer("model"),
        lora=None if model.lora is None else lora_arguments(model.lora),
        gradient_checkpointing=model.gradient_checkpointing,
        tiny=tiny,
    )


def build_generator(policy: Policy, model: ModelSpec) -> Generator:
    """Whoever writes the completions."""
    if model.generator == "openai":
        from operant.engines.language.generation.remote_generator import RemoteGenerator

        return RemoteGenerator(policy, model.url or "")
    if model.generator == "vllm":
        from operant.engines.language.generation.vllm_generator import VllmGenerator

        return VllmGenerator(policy, model.vllm, model.slots)
    from operant.engines.language.generation.torch_generator import TorchGenerator

    return TorchGenerator(policy, slots=model.slots)


def build_course(spec: Spec, seeds: Seeds) -> Course:
    """The problems to train on and to be examined in."""
    text = text_of(spec)
    if not text.mixture:
        whole = Part(make_task(spec.env.name, text.arguments), order=text.order)
        return Course([whole], text.mode, seeds.integer("problems"))
    parts = [
        Part(make_task(part.name, part.arguments, part.label), part.weight, part.count, part.order)
        for part in text.mixture
    ]
    return Course(parts, text.mode, seeds.integer("problems"))


def lora_arguments(lora: LoraSpec) -> dict[str, object]:
    """The settings in peft's words."""
    targets: object = list(lora.targets) or "all-linear"
    return {"r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": lora.dropout, "target_modules": targets}


def settings_of(spec: Spec) -> VerifiedAlgorithm:
    """The algorithm, which is one of this engine's."""
    settings = spec.agent.algorithm
    assert isinstance(settings, VerifiedAlgorithm)
    return settings


def model_of(spec: Spec) -> ModelSpec:
    """The model; a spec of this engine always has one."""
    return spec.agent.model or ModelSpec()


def text_of(spec: Spec) -> TextSpec:
    """What is said about the task."""
    return spec.env.text or TextSpec()


def choose_device(asked: str) -> str:
    """`asked`, or where it is `auto`, the GPU if there is one."""
    there = torch.cuda.is_available()
    if asked == "cuda" and not there:
        raise UsageError("meta.device is cuda, but torch finds no GPU here", remedy="-s meta.device=auto")
    return "cuda" if there and asked != "cpu" else "cpu"


def prepare_torch(spec: Spec, threads: int) -> None:
    """Make torch repeatable, and let it have its threads."""
    from transformers.utils import logging

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.disable_progress_bar()
    torch.set_num_threads(threads)
    keep_large_blocks()
    if choose_device(spec.meta.device) == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
