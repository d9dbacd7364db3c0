"""The desk of a server: many ask at once, one thread answers, and those who came together are answered together."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from operant.engines.language.completion import Completion, Listener, Prompt, Sampling
from operant.engines.language.scores import Scored, score_texts

if TYPE_CHECKING:
    from operant.engines.language.generate import TorchGenerator

GATHER_SECONDS = 0.004
"""So long the desk waits for others after the first: requests that are sent together do not arrive together."""


CLOSE_SECONDS = 60.0


@dataclass
class Ask:
    """A request for completions of prompts.

    With `seeded` equal asks get equal completions; otherwise each gets its own. `listener` hears this ask's prompts
    by their numbers here.
    """

    prompts: Sequence[Prompt]
    sampling: Sampling
    seeded: bool
    listener: Listener | None = None
    answer: Future[list[list[Completion]]] = field(default_factory=Future)
    rows: list[list[Completion | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [[None] * self.sampling.n for _ in self.prompts]
        self.lacking = len(self.prompts) * self.sampling.n

    def take(self, prompt: int, index: int, completion: Completion) -> None:
        """One completion has ended; with the last one the answer is there."""
        self.rows[prompt][index] = completion
        self.lacking -= 1
        if self.listener is not None:
            self.listener.done(prompt, index, completion)
        if not self.lacking:
            self.answer.set_result([[each for each in row if each is not None] for row in self.rows])


@dataclass
class _Work:
    """Anything else that needs the model to itself."""

    do: Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future)


Owner = tuple[Ask, int, int]


@dataclass
class Call:
    """One call of the generator: for every prompt, whose its completions are, in order."""

    sampling: Sampling
    prompts: list[Prompt] = field(default_factory=list)
    owners: list[list[Owner]] = field(default_factory=list)

    @property
    def follows(self) -> bool:
        """Whether anybody wants to hear the writing."""
        return any(ask.listener is not None and ask.listener.follows for row in self.owners for ask, _, _ in row)

    def progress(self, prompt: int, index: int, tokens: Sequence[int], logprobs: Sequence[float]) -> None:
        """Pass on what is written so far."""
        ask, number, which = self.owners[prompt][index]
        if ask.listener is not None and ask.listener.follows:
            ask.listener.progress(number, which, tokens, logprobs)

    def done(self, prompt: int, index: int, completion: Completion) -> None:
        """Hand a completion to its owner."""
        ask, number, which = self.owners[prompt][index]
        ask.take(number, which, completion)


class Desk:
    """Answers asks with a generator, one call after another, in a thread of its own (final)."""

    def __init__(self, generator: TorchGenerator) -> None:
        self.generator = generator
        self.calls = 0
        self._inbox: SimpleQueue[Ask | _Work | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="desk", daemon=True)
        self._thread.start()

    def ask(self, ask: Ask) -> Future[list[list[Completion]]]:
        """Completions of prompts that are known to have room in the model's context."""
        self._inbox.put(ask)
        return ask.answer

    def score(self, texts: Sequence[Sequence[int]], temperature: float, top: int) -> Future[list[Scored]]:
        """How likely texts are."""
        return self.do(lambda: score_texts(self.generator.policy, texts, temperature, top))

    def do(self, work: Callable[[], Any]) -> Future[Any]:
        """Whatever `work` returns, done while the generator rests."""
        item = _Work(work)
        self._inbox.put(item)
        return item.answer

    @property
    def waiting(self) -> int:
        """How many requests are not begun."""
        return self._inbox.qsize()

    def close(self) -> None:
        """Answer nobody any more; what is being written is dropped.

        The thread is waited for: one that still computes when the interpreter ends would bring the process down.
        """
        self.generator.halt()
        self._inbox.put(None)
        self._thread.join(timeout=CLOSE_SECONDS)

    def _serve(self) -> None:
        while (first := self._inbox.get()) is not None:
            time.sleep(GATHER_SECONDS)
            came = [first, *self._others()]
            for work in (each for each in came if isinstance(each, _Work)):
                _settle(work.answer, work.do)
            for call in plan([each for each in came if isinstance(each, Ask)]):
                self._carry_out(call)
            if came[-1] is None:
                return

    def _others(self) -> list[Ask | _Work | None]:
        found: list[Ask | _Work | None] = []
        try:
            while not found or found[-1] is not None:
                found.append(self._inbox.get_nowait())
        except Empty:
            pass
        return found

    def _carry_out(self, call: Call) -> None:
        self.calls += 1
        try:
            self.generator.generate(call.prompts, call.sampling, call)
        except Exception as fault:
            for ask in {id(ask): ask for row in call.owners for ask, _, _ in row}.values():
                if not ask.answer.done():
                    ask.answer.set_exception(fault)


def plan(asks: Sequence[Ask]) -> list[Call]:
    """As few calls as give every ask what it asked for.

    Asks without a seed share one drawn by chance; where their prompts are the same, one call writes as many
    completions as they want together, so that each gets others.
    """
    fixed: dict[Sampling, Call] = {}
    free: dict[Sampling, dict[Prompt, list[Owner]]] = defaultdict(lambda: defaultdict(list))
    for ask in asks:
        for number, prompt in enumerate(ask.prompts):
            owners = [(ask, number, index) for index in range(ask.sampling.n)]
            if ask.seeded or ask.sampling.temperature == 0:
                call = fixed.setdefault(ask.sampling, Call(ask.sampling))
                call.prompts.append(prompt)
                call.owners.append(owners)
            else:
                free[replace(ask.sampling, n=1, seed=0)][prompt] += owners
    return [*fixed.values(), *(call for sampling, wanted in free.items() for call in _by_chance(sampling, wanted))]


def _by_chance(sampling: Sampling, wanted: dict[Prompt, list[Owner]]) -> list[Call]:
    calls: dict[tuple[int, int], Call] = {}
    met: Counter[tuple[int, ...]] = Counter()
    for prompt, owners in wanted.items():
        # Under one seed the same tokens would be continued alike, even if one of them may go on for longer.
        drawn = replace(sampling, n=len(owners), seed=secrets.randbits(62))
        call = calls.setdefault((len(owners), met[prompt.tokens]), Call(drawn))
        met[prompt.tokens] += 1
        call.prompts.append(prompt)
        call.owners.append(owners)
    return list(calls.values())


def _settle(answer: Future[Any], work: Callable[[], Any]) -> None:
    try:
        answer.set_result(work())
    except Exception as fault:
        answer.set_exception(fault)
