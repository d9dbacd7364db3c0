"""The kinds of run whose processes `random_kills.py` kills: small language runs of one and of many turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SLOW_REWARD = '''
"""A reward that takes a moment, so that verifiers can be met at work."""

import time


def slow(completion: str) -> float:
    time.sleep(0.01)
    return float(len(completion) % 3)
'''
COMMANDS = '''
"""A research task in which whatever the policy says is a command that adds a line to a file and counts its lines."""

from operant.envs.research.workbench import ResearchTask
from operant.envs.text.dialogue import Dialogue


class Commands(ResearchTask):
    def __init__(self) -> None:
        super().__init__("prisoners_dilemma", style="bare", turns=4)

    def begin(self, problem, seed):
        return Commanded(super().begin(problem, seed))

    def restore(self, problem, seed, checkpoint):
        return Commanded(super().restore(problem, seed, checkpoint))


class Commanded(Dialogue):
    def __init__(self, inner) -> None:
        self.inner = inner
        self.opening, self.verdict = inner.opening, inner.verdict
        self.checkpoint, self.close = inner.checkpoint, inner.close

    def opening(self): ...

    def verdict(self): ...

    def hear(self, text, cut=False):
        return self.inner.hear("bash sleep 0.05; echo line >> notes; printf CCDCD > policy.txt; grep -c . notes")
'''


@dataclass(frozen=True)
class Case:
    """A kind of run: its settings, and which of its processes are killed beside the trainer."""

    env: dict[str, Any]
    staleness: int
    targets: tuple[str, ...] = ()
    context: int = 64
    meta: dict[str, Any] = field(default_factory=dict)
    frames: int = 256

    def spec(self, name: str) -> dict[str, Any]:
        """The resolved spec."""
        from operant.api.specs import load_spec

        model = {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2, "context": self.context}}
        document = {
            "name": name,
            "env": {**self.env, "max_frame": self.frames},
            "agent": {
                "algorithm": {"name": "grpo", "group_size": 4, "batch_size": 16, "staleness": self.staleness},
                "model": model,
            },
            "meta": {
                "max_session": 1,
                "log_frequency": 16,
                "eval_frequency": 10**6,
                "save_frequency": 64,
                "eval_episodes": 1,
                "final_episodes": 1,
                "keep_checkpoints": 2,
                **self.meta,
            },
        }
        return load_spec(document).model_dump(mode="json")


COPY = {"arguments": {"style": "bare", "letters": 5}, "max_tokens": 20}
SLOW = {**COPY, "reward_functions": [{"name": "slow_reward:slow"}], "workers": 2}
GUESS = {
    "arguments": {"style": "bare", "numbers": 8, "turns": 6},
    "max_tokens": 4,
    "dialogue": {"strategy": "interleaved", "reward": "final", "concurrency": 8},
}
RESEARCH = {
    "max_tokens": 8,
    "dialogue": {"strategy": "interleaved", "reward": "best", "concurrency": 8},
}
RAY = {"cluster": "ray", "ray": {"store_mb": 100, "generators": 2}}
CASES = {
    "single turn, staleness 0": Case({"name": "copy", "text": COPY}, 0),
    "single turn, staleness 2": Case({"name": "copy", "text": COPY}, 2),
    "single turn, slow reward, staleness 2": Case({"name": "copy", "text": SLOW}, 2, ("verifier",)),
    "multi-turn, staleness 2": Case({"name": "guess", "text": GUESS}, 2, (), 96),
    "research, staleness 1": Case(
        {"name": "kill_task:Commands", "text": RESEARCH}, 1, ("sandbox",), 256, {"save_frequency": 32}, 64
    ),
    "single turn, Ray, staleness 2": Case({"name": "copy", "text": SLOW}, 2, ("generator", "ray verifier"), 64, RAY),
    "multi-turn, Ray, staleness 2": Case({"name": "guess", "text": GUESS}, 2, ("generator",), 96, RAY),
}
