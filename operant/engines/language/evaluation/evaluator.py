"""Evaluation: a model answers the held-out problems of tasks, prompted and scored as in training."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from operant.engines.language.generation.build import build_generator
from operant.engines.language.generation.generator import Generator, Sampling
from operant.engines.language.policy.build import choose_device
from operant.engines.language.policy.chat_template import Template
from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.rollouts.multi_turn import MultiTurnRollouts, attach_drivers, single_turn_tasks
from operant.engines.language.rollouts.single_turn import RolloutWorker
from operant.engines.language.rollouts.tree_search import Search, Tree, records
from operant.engines.language.rollouts.types import Group, as_episodes, tree_episodes
from operant.envs.text.mixture import held_out
from operant.envs.text.pool import Verifiers
from operant.envs.text.task import Problem, Task
from operant.envs.text.tasks import make_task, takes_argument
from operant.errors import UsageError
from operant.run.episode import Episode
from operant.run.progress import Progress
from operant.spec.schema import Spec
from operant.spec.settings.language import DialogueSpec, ModelSpec, PartSpec

PROBLEMS_AT_ONCE = 256
"""Problems that are answered and scored before their episodes are handed over."""


@dataclass(frozen=True)
class ModelReference:
    """A model to evaluate or serve: its source, and how it is prompted.

    `spec` is that of the run it comes from, whose words for template, length and arguments of tasks then hold.
    With `url` a server writes the completions, and the source only says how texts become tokens.
    """

    source: str
    device: str = "auto"
    dtype: Literal["float32", "bfloat16"] = "float32"
    spec: Spec | None = None
    url: str | None = None
    slots: int = 256

    @property
    def template(self) -> Template:
        """How prompts are wrapped."""
        return self.spec.agent.model.template if self.spec and self.spec.agent.model else "auto"

    def policy(self) -> Policy:
        """The model, loaded."""
        return load_policy(self.source, dtype=self.dtype, device=choose_device(self.device))

    def generator(self, policy: Policy) -> Generator:
        """Whoever writes its completions."""
        kind: Literal["openai", "torch"] = "openai" if self.url else "torch"
        return build_generator(policy, ModelSpec(generator=kind, url=self.url, slots=self.slots))


@dataclass(frozen=True)
class EvalSet:
    """What is asked: `limit` held-out problems of each task, drawn by `seed` (all by default), `samples` times each.

    With `search` a tree of rollouts is grown for each problem, whose best node is the answer.
    """

    tasks: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    samples: int = 1
    temperature: float | None = None
    top_p: float = 1.0
    limit: int | None = None
    seed: int = 0
    workers: int = 2
    search: Search | None = None

    @property
    def sampling(self) -> Sampling:
        """The likeliest answer where there is one, at temperature 1 where there are several, unless told otherwise."""
        usual = 0.0 if self.samples == 1 and self.search is None else 1.0
        return Sampling(self.samples, usual if self.temperature is None else self.temperature, self.top_p, 0, self.seed)


@dataclass
class TaskResult:
    """The answers to one task: episodes as they come, and the seconds that generation and scoring took."""

    task: str
    episodes: list[Episode] = field(default_factory=list)
    seconds: float = 0.0


def make_tasks(eval_set: EvalSet, spec: Spec | None = None) -> list[Task]:
    """The tasks of an eval set, with the arguments that a spec gives them and then those of the eval set.

    `shots` goes to every task that takes it, `gsm8k.shots` to gsm8k alone; an argument that none takes is refused.
    """
    given: dict[str, dict[str, Any]] = {name: _trained_with(spec, name) for name in eval_set.tasks}
    for key, value in eval_set.arguments.items():
        place, _, argument = key.rpartition(".")
        named = [place] if place else list(eval_set.tasks)
        takers = [name for name in named if name in given and takes_argument(name, argument)]
        if not takers:
            raise UsageError(
                f"none of {', '.join(named)} takes an argument {argument!r}", remedy="operant tasks show NAME"
            )
        for name in takers:
            given[name][argument] = value
    return [make_task(name, arguments) for name, arguments in given.items()]


def not_taken(eval_set: EvalSet) -> list[str]:
    """What a person should know: arguments for every task that some of them do not take."""
    asked = [key for key in eval_set.arguments if "." not in key]
    deaf = {key: [name for name in eval_set.tasks if not takes_argument(name, key)] for key in asked}
    return [
        f"{key} has no effect on {', '.join(names)}, which does not take it" for key, names in deaf.items() if names
    ]


def _trained_with(spec: Spec | None, name: str) -> dict[str, Any]:
    text = spec.env.text if spec is not None else None
    if spec is None or text is None:
        return {}
    parts = text.mixture or (PartSpec(name=spec.env.name, arguments=text.arguments),)
    return next((dict(part.arguments) for part in parts if part.name == name), {})


def problems_of(task: Task, eval_set: EvalSet) -> Sequence[Problem]:
    """The problems of one task in an eval set."""
    problems = task.problems("eval")
    return problems if eval_set.limit is None else held_out(task, eval_set.limit, eval_set.seed)


class Evaluator:
    """Evaluates a loaded model on the tasks of an eval set (final)."""

    def __init__(self, policy: Policy, worker: RolloutWorker, tasks: Sequence[Task], eval_set: EvalSet) -> None:
        self.policy = policy
        self.worker = worker
        self.tasks = tasks
        self.eval_set = eval_set

    def check(self) -> None:
        """Refuse, before anything is written, problems that do not fit the model's context."""
        context = self.policy.context
        for task in (task for task in self.tasks if task.name not in self.worker.drivers):
            prompts = [(problem, self.worker.prompt(problem)) for problem in problems_of(task, self.eval_set)]
            long = [(one, asked) for one, asked in prompts if len(asked.tokens) + asked.max_tokens > context]
            if long:
                problem, asked = long[0]
                raise UsageError(
                    f"{len(long)} of {len(prompts)} problems do not fit the model's context of {context} tokens: "
                    f"{problem.id} has {len(asked.tokens)} and asks for {asked.max_tokens} more",
                    remedy=f"-a {task.name}.max_tokens=N, fewer --shots, or leave {task.name} out",
                )

    def evaluate(self, task: Task, at: Progress) -> Iterator[TaskResult]:
        """One task, some problems at a time: each time the same result, with more episodes."""
        result = TaskResult(task.name)
        problems = problems_of(task, self.eval_set)
        if self.eval_set.search is not None:
            yield from self._searched(result, task, problems, self.eval_set.search, at)
            return
        for start in range(0, len(problems), PROBLEMS_AT_ONCE):
            begun = time.perf_counter()
            groups = self.worker.rollout(problems[start : start + PROBLEMS_AT_ONCE], self.eval_set.sampling)
            result.seconds += time.perf_counter() - begun
            for group in groups:
                result.episodes += tree_episodes(group, "eval", self.eval_set.seed, at)
                result.episodes += _episodes(group, self.eval_set.seed, at)
            yield result

    def _searched(
        self, result: TaskResult, task: Task, problems: Sequence[Problem], search: Search, at: Progress
    ) -> Iterator[TaskResult]:
        """Grow a tree for every problem."""
        multi_turn = self.worker.drivers.get(task.name)
        if not isinstance(multi_turn, MultiTurnRollouts):
            raise UsageError(
                f"{task.name} is answered at once, so there is nothing to search", remedy="--samples N draws N answers"
            )
        for problem in problems:
            begun = time.perf_counter()
            tree = Tree(multi_turn, problem, search, self.eval_set.sampling)
            found = records(tree, tree.grow(), self.eval_set.seed, at)
            result.episodes += [replace(episode, version=at.updates) for episode in found]
            result.seconds += time.perf_counter() - begun
            yield result


@contextmanager
def open_evaluator(reference: ModelReference, eval_set: EvalSet) -> Iterator[Evaluator]:
    """An evaluator with everything loaded; closed at the end."""
    tasks = make_tasks(eval_set, reference.spec)
    policy = reference.policy()
    generator = reference.generator(policy)
    verifiers = Verifiers(single_turn_tasks(tasks), eval_set.workers)
    spec = reference.spec
    longest = spec.env.text.max_tokens if spec and spec.env.text else None
    overlong = getattr(spec.agent.algorithm, "overlong", "keep") if spec else "keep"
    try:
        worker = RolloutWorker(policy, generator, verifiers, reference.template, longest, overlong)
        attach_drivers(worker, tasks, spec.env.text.dialogue if spec and spec.env.text else DialogueSpec())
        evaluator = Evaluator(policy, worker, tasks, eval_set)
        evaluator.check()
        yield evaluator
    finally:
        verifiers.close()
        generator.close()


def _episodes(group: Group, seed: int, at: Progress) -> list[Episode]:
    """The records of a group, which say of each answer whether it could be read."""
    episodes = as_episodes(group, "eval", seed, at)
    outcomes = [answer.verdict.outcome for answer in group.answers] + ["error"] * len(group.errors)
    return [
        replace(episode, parts={**episode.parts, "unparsed": float(outcome == "unparsed")}, version=at.updates)
        for episode, outcome in zip(episodes, outcomes, strict=True)
    ]


def print_episodes(episodes: list[Episode], sink: str | Path) -> list[Episode]:
    """Print episodes, or write them to a .txt file."""
    words = "\n\n".join(map(format_episode, episodes))
    if isinstance(sink, Path) and sink.suffix in (".gif", ".mp4", ".html"):
        # A video was only the default where there is no screen.
        if sink.parent.name != "media":
            raise UsageError(f"text makes no video: {sink.name}", remedy="--out answers.txt, or leave --out away")
        print(words, flush=True)
    elif isinstance(sink, Path):
        sink.parent.mkdir(parents=True, exist_ok=True)
        sink.write_text(words + "\n")
    else:
        print(words, flush=True)
    return episodes


def format_episode(episode: Episode) -> str:
    """One episode as lines."""
    score = "no score" if episode.score is None else f"{episode.score:g}"
    head = f"{episode.item}: {score}" + ("" if episode.ended == "terminated" else f" ({episode.ended})")
    turns = [f"  {turn.role}: {turn.text.strip()}" for turn in episode.turns]
    return "\n".join([head, *turns, *([f"  error: {episode.error}"] if episode.error else [])])
