"""Tasks of many turns: a policy speaks, its world answers, until the end, and then there is a verdict.

A dialogue knows nothing of models or tokens. It is one rollout: begun fresh, spoken to by the one thread that began
it, scored, closed. What it holds (a sandbox, a game) is its own and is shared with no other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from operant.envs.text.task import Problem, Task, Verdict
from operant.envs.text.well_formed import well_formed
from operant.errors import UsageError

Role = Literal["system", "user", "assistant", "tool"]
Kind = Literal["novice", "lazy", "expert", "cheater"]


@dataclass(frozen=True)
class Message:
    """Something that was said, as text that can be encoded; `tool` is the tool that speaks, where one does."""

    role: Role
    text: str
    tool: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", well_formed(self.text))


def as_chat(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages for a chat: the world speaks as the user, and in one message at a time."""
    turns: list[dict[str, str]] = []
    for message in messages:
        role = "user" if message.role == "tool" else message.role
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n{message.text}"
        else:
            turns.append({"role": role, "content": message.text})
    return turns


@dataclass(frozen=True)
class Response:
    """What the world makes of a policy's words.

    `messages` is what it says back; `tool` is the tool that was used; `reward` is what this turn earned, if it could
    earn anything, and `score` the measure behind it as it was shown, in the task's own unit. `fault` says in a few
    words what was wrong with the turn, such as a tool that does not exist.
    """

    messages: tuple[Message, ...] = ()
    tool: str | None = None
    reward: float | None = None
    score: float | None = None
    fault: str | None = None
    done: bool = False

    def __post_init__(self) -> None:
        if self.fault is not None:
            object.__setattr__(self, "fault", well_formed(self.fault))


class Dialogue(ABC):
    """One rollout under way (abstract)."""

    @abstractmethod
    def opening(self) -> tuple[Message, ...]:
        """The first messages to the policy."""

    @abstractmethod
    def hear(self, text: str, cut: bool = False) -> Response:
        """The answer to the policy's words; `cut` where they were ended by their length."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """What the rollout is worth, asked once: after the end, or when its turns, time or context are spent.

        `parts` has the rewards by scheme that a spec may choose from: "final", "best" and "delta", as far as they
        have a meaning here, and "faults", their number.
        """

    def snapshot(self) -> bytes:
        """All that a later `DialogueTask.resume` needs to go on from here."""
        raise UsageError(f"{type(self).__name__} keeps no snapshots", remedy="choose another task to search in")

    def checkpoint(self) -> bytes | None:
        """All that `DialogueTask.restore` needs to be this very rollout after its last turn, scores included.

        None where that is cheaper by hearing the same words again, to which the same answers must come.
        """
        return None

    def close(self) -> None:
        """Leave nothing behind; may be called at any moment, and twice."""
        return


@dataclass(frozen=True)
class Scripted:
    """A policy without a model: what it says next, given a problem and all that was said.

    A `novice` shows the form of an answer without knowing a good one; a `lazy` one reaches the baseline, an `expert`
    the ceiling, and a `cheater` tries what must not pay.
    """

    name: str
    kind: Kind
    respond: Callable[[Problem, Sequence[Message]], str]


class DialogueTask(Task):
    """A family of problems that are worked on in turns (abstract). `TURNS` is the most that a policy may take."""

    TURNS: ClassVar[int] = 10

    @property
    def turns(self) -> int:
        """The most turns of a rollout."""
        return self.TURNS

    @property
    def tolerance(self) -> float:
        """How far the mean score of a few rollouts may lie from the truth by chance."""
        return 0.0

    @abstractmethod
    def begin(self, problem: Problem, seed: int) -> Dialogue:
        """A fresh rollout; the same seed and the same words give the same answers."""

    def resume(self, problem: Problem, seed: int, snapshot: bytes) -> Dialogue:
        """A fresh rollout that goes on where `Dialogue.snapshot` was taken."""
        del seed, snapshot
        raise UsageError(f"{problem.task} keeps no snapshots", remedy="choose another task to search in")

    def restore(self, problem: Problem, seed: int, checkpoint: bytes) -> Dialogue:
        """The rollout itself as it was at `Dialogue.checkpoint`."""
        del seed, checkpoint
        raise UsageError(f"{problem.task} keeps no checkpoints", remedy="delete the run's folder rollouts")

    def agents(self) -> Mapping[str, Scripted]:
        """Policies without a model, by name."""
        return {}

    @property
    def agent_kinds(self) -> tuple[Kind, ...]:
        """The kinds of agents that there should be."""
        return get_args(Kind)

    def facts(self) -> Mapping[str, str]:
        """Facts about the task for people, by name."""
        named = ", ".join(f"{agent.name} ({agent.kind})" for agent in self.agents().values())
        return {"turns": str(self.turns), "agents": named or "none"}

    def gold(self, problem: Problem) -> str | None:
        """There is no single answer to a dialogue; its experts are `agents`."""
        del problem
        return None

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict on a rollout of one turn."""
        dialogue = self.begin(problem, 0)
        try:
            dialogue.opening()
            dialogue.hear(completion)
            return dialogue.verdict()
        finally:
            dialogue.close()


@dataclass(frozen=True)
class Exchange:
    """A turn as it was played: the policy's words and the world's answer."""

    text: str
    response: Response


@dataclass(frozen=True)
class Played:
    """A whole rollout of a scripted policy."""

    opening: tuple[Message, ...]
    exchanges: tuple[Exchange, ...]
    verdict: Verdict


def play_script(
    task: DialogueTask, problem: Problem, agent: Scripted, seed: int = 0, turns: int | None = None
) -> Played:
    """Let a scripted policy play one rollout to its end, or for so many turns."""
    dialogue = task.begin(problem, seed)
    try:
        opening = dialogue.opening()
        said, exchanges = list(opening), []
        for _ in range(turns or task.turns):
            text = agent.respond(problem, said)
            response = dialogue.hear(text)
            exchanges.append(Exchange(text, response))
            said += [Message("assistant", text), *response.messages]
            if response.done:
                break
        return Played(opening, tuple(exchanges), dialogue.verdict())
    finally:
        dialogue.close()
