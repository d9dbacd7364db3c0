"""The Ray actors: a generator worker and a verifier worker. Neither knows where it was placed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from operant.engines.language.distributed.weight_sync import SerializedWeights, check_received, deserialize
from operant.engines.language.generation.generator import Completion, Probe, Prompt, Sampling
from operant.envs.text.rewards import RewardRequest, Value
from operant.envs.text.task import Problem, Verdict
from operant.envs.text.verify_worker import Recipe
from operant.errors import RunError


class GeneratorWorker:
    """A generator on a model of its own, made from the spec (final)."""

    def __init__(self, spec: dict[str, Any], seed: int, threads: int, device: str) -> None:
        from operant.engines.language.config import model_of
        from operant.engines.language.generation.torch_generator import TorchGenerator
        from operant.engines.language.policy.build import build_policy, prepare_torch
        from operant.run.seeding import Seeds
        from operant.spec.schema import Spec

        whole = Spec.model_validate(spec)
        prepare_torch(whole, threads)
        self.policy = build_policy(model_of(whole), Seeds(seed), device)
        self.generator = TorchGenerator(self.policy, slots=model_of(whole).slots)
        self.generator.beat = self._beat
        self.beats = 0

    def about(self) -> int:
        """The process here."""
        return os.getpid()

    def heartbeat(self) -> int:
        """A number that grows while work goes on."""
        return self.beats

    def load(self, serialized: SerializedWeights) -> int:
        """Take over weights and check that they arrived; returns their version."""
        self.generator.load(deserialize(serialized), serialized.version)
        check_received(serialized, self.policy)
        self._beat()
        return serialized.version

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling, version: int) -> list[list[Completion]]:
        """Completions by the weights of that version, which must be here."""
        if version != self.generator.version:
            raise RunError(f"asked to write with version {version}, but {self.generator.version} is loaded")
        return self.generator.generate(prompts, sampling)

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """What is held and written here."""
        return self.generator.probe(prompts, sampling)

    def _beat(self) -> None:
        self.beats += 1


class VerifierWorker:
    """Verdicts on answers, by the same pool of limited processes as elsewhere, one process wide (final)."""

    def __init__(
        self, recipes: Sequence[Recipe], seconds: float | None, rewards: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        from operant.envs.text.pool import Verifiers
        from operant.envs.text.tasks import make_task

        tasks = [make_task(name, arguments, label) for name, arguments, label in recipes]
        self.pool = Verifiers(tasks, 1, seconds, rewards)
        self.beats = 0
        for task in tasks:
            # The first verdict starts the process, which takes long beside what verdicts take.
            self.pool.verify(task.problems("train")[0], "")

    def about(self) -> int:
        """The process here."""
        return os.getpid()

    def heartbeat(self) -> int:
        """A number that grows while work goes on."""
        return self.beats

    def verify(self, answers: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """The verdicts on answers, in their order."""
        return self.pool.verify_all(answers, beat=self._beat)

    def reward(self, requests: Sequence[RewardRequest]) -> list[list[Value]]:
        """The values of reward functions, in the order of the requests."""
        return self.pool.reward_all(requests, beat=self._beat)

    def _beat(self) -> None:
        self.beats += 1
