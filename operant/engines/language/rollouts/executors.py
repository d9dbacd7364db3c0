"""Second models that carry out what a policy directs: on this machine, or behind an OpenAI-compatible server.

Rollouts live in threads of their own, and their executors are asked one call at a time, each with a seed of its own:
what a model on this machine writes then depends on seeds alone.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.http_client import Client
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.chat_template import encode, render_turns
from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.policy.tiny import TinySizes
from operant.envs.research.attempts import Executor
from operant.envs.research.directed import DirectedResearch
from operant.envs.text.dialogue import Message, as_chat
from operant.envs.text.task import Problem, Task
from operant.errors import RunError, UsageError

LEAST_TOKENS = 4
SEED_LIMIT = 1 << 31  # what servers take
TINY = TinySizes(layers=2, width=64, context=4_096)


class ModelExecutor:
    """A model on this machine that does not learn (final)."""

    def __init__(self, policy: Policy, temperature: float) -> None:
        self.policy = policy
        self.temperature = temperature
        self.generator = TorchGenerator(policy, slots=1, graphs=False)
        self._alone = threading.Lock()

    def reply(self, problem: Problem, messages: Sequence[Message], seed: int) -> str | None:
        """The model's next words; None where its context is full."""
        with self._alone:
            tokens = encode(render_turns(as_chat(messages), self.policy), self.policy)
            room = min(problem.max_tokens, self.policy.context - len(tokens))
            if room < LEAST_TOKENS:
                return None
            prompt = Prompt(tokens, room, problem.stop)
            return self.generator.generate([prompt], Sampling(1, self.temperature, seed=seed))[0][0].text


class ServerExecutor:
    """A model behind an OpenAI-compatible server; `OPERANT_API_KEY` is sent where it is set (final)."""

    def __init__(self, url: str, model: str | None, temperature: float) -> None:
        self.client = Client(url)
        self.model = model or "default"
        self.temperature = temperature
        try:
            self._ask([{"role": "user", "content": "ready?"}], 1, 0)
        except RunError as fault:
            raise UsageError(
                f"the executor cannot be asked: {fault.cause}",
                place=self.client.url,
                remedy="OPERANT_API_KEY is its key; -s env.text.arguments.executor=MODEL has another model do the work",
            ) from fault

    def reply(self, problem: Problem, messages: Sequence[Message], seed: int) -> str | None:
        """What the server's model says next."""
        return self._ask(as_chat(messages), problem.max_tokens, seed)

    def _ask(self, turns: list[dict[str, str]], most: int, seed: int) -> str:
        body = {"model": self.model, "messages": turns, "max_tokens": most, "temperature": self.temperature}
        reply = self.client.post("/chat/completions", {**body, "seed": seed % SEED_LIMIT})
        try:
            return str(reply["choices"][0]["message"]["content"] or "")
        except (KeyError, IndexError, TypeError):
            raise RunError("the server's reply holds no message", place=self.client.url) from None


def attach_executors(tasks: Sequence[Task], policy: Policy) -> None:
    """Give tasks whose executor is a model that model, one for all that name the same, on the policy's device."""
    found: dict[tuple[object, ...], Executor] = {}
    for task in tasks:
        if isinstance(task, DirectedResearch) and task.player is None:
            key = (task.executor, task.executor_model, task.executor_temperature)
            found[key] = task.player = found.get(key) or _executor(task, policy)


def _executor(task: DirectedResearch, policy: Policy) -> Executor:
    if task.executor.startswith(("http://", "https://")):
        return ServerExecutor(task.executor, task.executor_model, task.executor_temperature)
    weight = next(policy.model.parameters())
    dtype = "bfloat16" if str(weight.dtype).endswith("bfloat16") else "float32"
    own = load_policy(task.executor, dtype=dtype, device=str(weight.device), tiny=TINY)
    own.model.eval().requires_grad_(False)
    return ModelExecutor(own, task.executor_temperature)
