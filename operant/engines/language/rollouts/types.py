"""What rollouts give: answers with their verdicts, in groups of one problem, and the episodes recorded of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from operant.engines.language.generation.generator import Completion, Prompt, Sampling, Step
from operant.envs.text.rewards import RewardRequest, Value
from operant.envs.text.task import INVALID, Invalid, Problem, TreeNode, Verdict
from operant.run.episode import Episode, Turn
from operant.run.progress import Progress

SEARCH = "search"


@dataclass(frozen=True)
class Answer:
    """What a policy wrote, in one step or in many, and its verdict; `reward` is learnt from.

    `turns` are the words of a dialogue, which is learnt from as one sample if it is `interleaved`, and which was `cut`
    if it did not come to its own end. It `took` so many seconds.
    """

    steps: tuple[Step, ...]
    verdict: Verdict
    reward: float
    turns: tuple[Turn, ...] = ()
    interleaved: bool = False
    cut: bool = False
    took: float | None = None

    @property
    def completion(self) -> Completion:
        """What was written last."""
        return self.steps[-1].completion

    @property
    def length(self) -> int:
        """All tokens that were written."""
        return sum(len(step.completion.tokens) for step in self.steps)

    @property
    def version(self) -> int:
        """The updates of the oldest weights that wrote a part of it."""
        return min(step.completion.version for step in self.steps)


def invalid_of(verdicts: Iterable[Verdict]) -> tuple[tuple[str, ...], tuple[Invalid, ...]]:
    """The `errors` and `reasons` of a group: notes of the invalid verdicts, and why they are invalid."""
    found: list[tuple[str, Invalid]] = [
        (verdict.note, why) for verdict in verdicts for why in INVALID if verdict.outcome == why
    ]
    return tuple(note for note, _ in found), tuple(why for _, why in found)


class VerifierPool(Protocol):
    """Score answers: `Verifiers` in processes here, or others elsewhere."""

    def verify_all(
        self,
        answers: Sequence[tuple[Problem, str]],
        within: float | None = None,
        beat: Callable[[], object] = lambda: None,
    ) -> list[Verdict]:
        """The verdicts on answers, in their order; those that have not come `within` so many seconds are errors."""
        ...

    def reward_all(
        self,
        requests: Sequence[RewardRequest],
        within: float | None = None,
        beat: Callable[[], object] = lambda: None,
    ) -> list[list[Value]]:
        """The values of reward functions, or why there are none, in the order of the requests and completions."""
        ...

    def close(self) -> None:
        """Let go of processes."""
        ...


@dataclass(frozen=True)
class Group:
    """The answers to one problem; those whose verdict is invalid are left out, and counted.

    `errors` are the notes of those, and `reasons`, in the same order, why they are invalid, where that is known.

    `place` is the prompt's position in the problem sampler, by which it is accounted for; evaluation has none.
    `teacher_prompt` are the tokens of the prompt as a teacher is asked it, where that is not as the policy is.
    """

    problem: Problem
    prompt: Prompt
    answers: tuple[Answer, ...]
    errors: tuple[str, ...] = ()
    place: int | None = None
    teacher_prompt: tuple[int, ...] | None = None
    reasons: tuple[Invalid, ...] = ()

    @property
    def version(self) -> int:
        """The updates of the oldest weights that wrote an answer; without answers it is as good as new."""
        return min((answer.version for answer in self.answers), default=2**62)

    @property
    def rewards(self) -> list[float]:
        """The rewards of the answers, in order."""
        return [answer.reward for answer in self.answers]

    @property
    def invalid(self) -> list[tuple[Invalid, str]]:
        """Of each answer that was left out: the reason and the note."""
        unknown: list[Invalid] = ["error"] * (len(self.errors) - len(self.reasons))
        return list(zip((*self.reasons, *unknown), self.errors, strict=True))

    @property
    def has_signal(self) -> bool:
        """Whether some answers are better than others."""
        return len(set(self.rewards)) > 1


@dataclass
class Timing:
    """Seconds spent by part, and tokens written, since the last row."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    tokens: int = 0


@dataclass(frozen=True)
class PromptPlace:
    """A training prompt's `place` in the order of the sampler, and its `number` among those that share a seed.

    Its weights were made by all prompts before the place `after`.
    """

    place: int
    number: int
    after: int


class RolloutDriver(Protocol):
    """Rolls out problems that take more than one turn."""

    def rollout(
        self, problems: Sequence[Problem], sampling: Sampling, places: Sequence[PromptPlace] = ()
    ) -> list[Group]:
        """A group of `sampling.n` rollouts of each problem, in the order of the problems."""
        ...


def as_episodes(group: Group, split: str, seed: int | None, at: Progress, words: bool = True) -> list[Episode]:
    """The records of a group's answers, with prompt and completion if `words`; failed scoring has no score.

    `seed` is the one that the problems were drawn by; a problem that has a seed of its own is recorded with that.
    Dialogues keep their words always: they are few, dear and long to come by.
    """
    seed = group.problem.seed_or(seed)
    asked = (Turn("user", group.problem.prompt, len(group.prompt.tokens)),) if words else ()
    episodes = [
        replace(_episode(group.problem, asked, answer, split, seed, at), **_tree_links(group, index, split, at))
        for index, answer in enumerate(group.answers)
    ]
    for note in group.errors:
        row = Episode(
            group.problem.task, split, seed, at, None, 0, "error", turns=asked, error=note, item=group.problem.id
        )
        episodes.append(row)
    return episodes


def tree_episodes(group: Group, split: str, seed: int | None, at: Progress) -> list[Episode]:
    """The records of all attempts where answers are trees of them, with the split of a search."""
    seed = group.problem.seed_or(seed)
    return [
        _attempt(group.problem, answer, node, _tree_name(group, index, split, at), seed, at)
        for index, answer in enumerate(group.answers)
        for node in answer.verdict.nodes
    ]


def _attempt(problem: Problem, answer: Answer, node: TreeNode, name: str, seed: int | None, at: Progress) -> Episode:
    verdict = node.verdict
    return Episode(
        env=problem.task,
        split=SEARCH,
        seed=seed,
        at=at,
        score=verdict.score,
        length=sum(turn.role == "assistant" for turn in node.turns),
        ended="error" if verdict.score is None else "terminated",
        parts={**verdict.parts, **({} if node.value is None else {"value": node.value})},
        turns=node.turns,
        error=verdict.note if verdict.score is None else None,
        item=problem.id,
        id=f"{name}/{node.name}",
        parent=None if node.parent is None else f"{name}/{node.parent}",
        version=answer.version,
    )


def _tree_name(group: Group, index: int, split: str, at: Progress) -> str:
    """What tells a tree apart from all others of a run."""
    return f"{group.problem.id}@{at.frames}.{split}.{group.place or 0}.{index}"


def _tree_links(group: Group, index: int, split: str, at: Progress) -> dict[str, Any]:
    """The name of an answer that is a tree, and its best attempt."""
    nodes, name = group.answers[index].verdict.nodes, _tree_name(group, index, split, at)
    best = next((f"{name}/{node.name}" for node in nodes if node.best), None)
    return {"id": name, "parent": best} if best is not None else {}


def _episode(
    problem: Problem, asked: tuple[Turn, ...], answer: Answer, split: str, seed: int | None, at: Progress
) -> Episode:
    completion, length = answer.completion, answer.length
    said = (*asked, Turn("assistant", completion.text, length, reward=answer.reward)) if asked else ()
    return Episode(
        env=problem.task,
        split=split,
        seed=seed,
        at=at,
        score=answer.verdict.score if answer.turns else answer.reward,
        length=length,
        ended="truncated" if answer.cut or completion.finish == "length" else "terminated",
        parts=_parts(answer),
        turns=answer.turns or said,
        item=problem.id,
        version=answer.version,
        took=answer.took,
    )


def _parts(answer: Answer) -> dict[str, float]:
    """The verdict's numbers, and of a dialogue what was learnt from."""
    return {**answer.verdict.parts, "reward": answer.reward} if answer.turns else dict(answer.verdict.parts)
