"""Research tasks as tasks of many turns: a folder becomes problems, and a problem a rollout in a fresh sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, get_args

from operant.envs.research import wording
from operant.envs.research.catalogue import MLGYM
from operant.envs.research.folder import load_folder
from operant.envs.research.mlgym.task import load_imported
from operant.envs.research.rollout import Rollout
from operant.envs.research.settings import Keep, Settings, Style
from operant.envs.research.source import Source
from operant.envs.research.state import Start, start_from
from operant.envs.sandbox import Kind, require_sandbox
from operant.envs.secret import load_secret
from operant.envs.text.dialogue import Dialogue, DialogueTask, Scripted
from operant.envs.text.dialogue import Kind as AgentKind
from operant.envs.text.task import Problem
from operant.errors import UsageError

EVAL_FROM = 1_000_000  # the first problem of eval; train has the numbers below
OUTPUT_BYTES: dict[Style, int] = {"words": 8_000, "bare": 120}
MAX_TOKENS: dict[Style, int] = {"words": 1_024, "bare": 64}
SAFE = tuple(kind for kind in get_args(Kind) if kind != "process")
NOISES = 3  # standard deviations that a mean may lie off by chance


class ResearchTask(DialogueTask):
    """The problems of a task's folder (final).

    `folder` is a path, or the name of a task that comes with Operant. There are `instances` problems to train on and
    `eval_instances` others, which differ in their seeds. `style` is words or bare; `output_bytes` limits what is shown
    of an output; `turns` and `validations` stand in for the folder's limits; `noise` is added to validation scores;
    `keep` says whether the best validated files are graded, or the last ones. `data` is the folder of datasets.
    `folder` may be `mlgym:FILE`, a task file of a checkout, for which `ceiling` and `artefacts` may be given;
    `forgeable` runs one though its agents can write their score themselves.
    """

    SECONDS = 600.0

    def __init__(
        self,
        folder: str,
        instances: int = 1_000,
        eval_instances: int = 100,
        style: Style = "words",
        output_bytes: int | None = None,
        turns: int | None = None,
        validations: int | None = None,
        noise: float = 0.0,
        keep: Keep = "best",
        fault_penalty: float = 0.02,
        max_tokens: int | None = None,
        sandbox: Kind = "auto",
        data: str | os.PathLike[str] | None = None,
        ceiling: float | None = None,
        artefacts: Sequence[str] = (),
        forgeable: bool = False,
    ) -> None:
        self.folder = _source(folder, ceiling, artefacts, data, forgeable)
        self.name = self.folder.task.name
        self._refuse("style", style, get_args(Style))
        self._refuse("keep", keep, get_args(Keep))
        self._refuse("sandbox", sandbox, SAFE)
        limits = self.folder.task.limits
        self._turns = limits.turns if turns is None else turns
        self._sizes = {"train": instances, "eval": eval_instances}
        numbers = {"instances": instances, "eval_instances": eval_instances, "turns": self._turns, "noise": noise}
        numbers |= {"validations": validations or 0, "fault_penalty": fault_penalty}
        for argument, number in numbers.items():
            self._at_least(argument, number, 1 if argument in ("turns", "instances", "eval_instances") else 0)
        self._at_most_of_train(instances)
        self._max_tokens = max_tokens or MAX_TOKENS[style]
        self._data = None if data is None else os.fspath(data)
        self._arguments = {
            "style": style,
            "output_bytes": output_bytes or OUTPUT_BYTES[style],
            "turns": self._turns,
            "validations": limits.validations if validations is None else validations,
            "noise": noise,
            "keep": keep,
            "fault_penalty": fault_penalty,
            "kind": sandbox,
        }

    @property
    def turns(self) -> int:
        """The most turns of a rollout."""
        return self._turns

    @property
    def tolerance(self) -> float:
        """How far a normalized score may lie from its mean by chance."""
        return NOISES * self.folder.task.noise / self.settings.scale.span

    @cached_property
    def settings(self) -> Settings:
        """What all rollouts have in common; data files must be there from here on."""
        return Settings(folder=self.folder, data=self.folder.data(self._data), secret=load_secret(), **self._arguments)

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the secret that the hidden seeds are drawn from."""
        return self.settings.secret.fingerprint

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The problems of a split: one prompt, many seeds."""
        first = EVAL_FROM if split == "eval" else 0
        prompt = wording.assignment(self.settings, tuple(self.settings.files(first)))
        bare = self.settings.style == "bare"
        system = None if bare else wording.manners(self.settings)
        return [
            Problem(
                id=f"{self.name}/{split}/{number}",
                task=self.name,
                prompt=prompt,
                answer={"seed": first + number},
                system=system,
                stop=("\n",) if bare else (),
                max_tokens=self._max_tokens,
                seed=first + number,
            )
            for number in range(self._sizes[split])
        ]

    def begin(self, problem: Problem, seed: int) -> Dialogue:
        """A fresh rollout. Its sandbox is opened when something must run in it; that one can be is seen to now."""
        require_sandbox(self.settings.kind, self.folder.packages.folders)
        return Rollout(self.settings, problem.answer["seed"], seed, Start())

    def resume(self, problem: Problem, seed: int, snapshot: bytes) -> Dialogue:
        """A fresh rollout that goes on from a snapshot, with what is left of its budget."""
        number = problem.answer["seed"]
        return Rollout(self.settings, number, seed, start_from(self.settings, number, snapshot))

    def restore(self, problem: Problem, seed: int, checkpoint: bytes) -> Dialogue:
        """The rollout itself as it was at its checkpoint."""
        return Rollout.restored(self.settings, problem.answer["seed"], seed, checkpoint)

    @property
    def agent_kinds(self) -> tuple[AgentKind, ...]:
        """The kinds of scripted agents that the folder should have."""
        return self.folder.agent_kinds

    def agents(self) -> Mapping[str, Scripted]:
        """The scripted agents of the folder."""
        return self.folder.agents

    def facts(self) -> Mapping[str, str]:
        """Facts about the task for people."""
        task, settings = self.folder.task, self.settings
        first = self.problems("eval")[0].answer["seed"]
        limits = {**task.limits.model_dump(), "turns": self._turns, "validations": settings.validations}
        return {
            "about": task.about,
            "metric": f"{task.metric.name}, {'higher' if settings.scale.sign > 0 else 'lower'} is better",
            "baseline": f"{task.baseline:g}",
            "ceiling": f"{task.ceiling:g}",
            "noise": f"{task.noise:g}",
            "graded": ", ".join(task.artefacts),
            "files": ", ".join(sorted(settings.files(first))) or "none",
            "secret": f"fingerprint {self.fingerprint}",
            "limits": ", ".join(f"{name} {value}" for name, value in limits.items()),
            **({"MARKED": "; ".join(self.folder.marks)} if self.folder.marks else {}),
            **super().facts(),
        }

    def prepare(self) -> None:
        """Load the grader, find the data, and see that there is a sandbox to work in, which shows the packages."""
        self.problems("eval")
        require_sandbox(self.settings.kind, self.folder.packages.folders)

    def _refuse(self, argument: str, value: object, choices: tuple[object, ...]) -> None:
        if value not in choices:
            raise UsageError(
                f"{self.name}: {argument} is no {value!r}", remedy=f"{argument}: {' or '.join(map(str, choices))}"
            )

    def _at_least(self, argument: str, number: float, least: float) -> None:
        if number < least:
            raise UsageError(f"{self.name}: {argument} must be at least {least:g}, not {number:g}")

    def _at_most_of_train(self, instances: int) -> None:
        if instances > EVAL_FROM:
            raise UsageError(
                f"{self.name}: instances must be at most {EVAL_FROM}, so that no problem is in both splits"
            )


def _source(
    name: str,
    ceiling: float | None,
    artefacts: Sequence[str],
    data: str | os.PathLike[str] | None,
    forgeable: bool,
) -> Source:
    """Where a task is written down; what a folder says itself cannot be said otherwise."""
    if name.startswith(MLGYM):
        places = None if data is None else os.fspath(data)
        return load_imported(name.removeprefix(MLGYM), ceiling, artefacts, places, forgeable)
    if ceiling is not None or artefacts or forgeable:
        raise UsageError(
            f"{name}: ceiling, artefacts and forgeable are for mlgym:FILE; a folder says them in its task.yaml"
        )
    return load_folder(name)
