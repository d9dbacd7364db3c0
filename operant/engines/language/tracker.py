"""What a session counts, and the averages of its next metric row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from operant.engines.language.rollouts.types import Group


class Tracker:
    """Counters of a session, and sums since the last row; both are part of every checkpoint."""

    def __init__(self) -> None:
        self.frames = 0
        self.updates = 0
        self.episodes = 0
        self.tokens = 0
        self.position = 0
        self.owed: list[int] = []
        self.rounds = 0
        self.silent_rounds = 0
        self.without_score = 0
        self.invalid: dict[str, int] = {}
        self.reward_state: dict[str, Any] = {}
        self._sums: dict[str, list[float]] = {}

    def add(self, values: Mapping[str, float], weight: float = 1.0) -> None:
        """Take values into the averages of the next row."""
        for key, value in values.items():
            total = self._sums.setdefault(key, [0.0, 0.0])
            total[0] += value * weight
            total[1] += weight

    def add_groups(self, groups: Sequence[Group], one_baseline: bool = False) -> None:
        """Count a round's answers, and average what they were worth.

        With `one_baseline` for all groups of a round there is something to learn wherever two answers of it differ.
        """
        for group in groups:
            self._add_answers(group)
            self.add({"rollout/zero_variance": float(not group.has_signal)})
        self.rounds += 1
        rewards = {reward for group in groups for reward in group.rewards}
        has_signal = len(rewards) > 1 if one_baseline else any(group.has_signal for group in groups)
        self.silent_rounds = 0 if has_signal else self.silent_rounds + 1

    def _add_answers(self, group: Group) -> None:
        count = len(group.answers) + len(group.errors)
        self.frames += count
        self.episodes += count
        self.add({"rollout/errors": len(group.errors) / max(count, 1)}, count)
        self.without_score += len(group.errors)
        for why, _ in group.invalid:  # they are no rewards: neither learnt from nor part of a mean
            self.invalid[why] = self.invalid.get(why, 0) + 1
        for answer in group.answers:
            completion, verdict = answer.completion, answer.verdict
            self.tokens += answer.length
            self.add(
                {
                    "train/return": answer.reward,
                    "train/length": float(answer.length),
                    f"reward/{group.problem.task}": answer.reward,
                    "rollout/truncated": float(completion.finish == "length"),
                    **({"rollout/turns": float(len(answer.steps))} if answer.turns else {}),
                    "rollout/unparsed": float(verdict.outcome == "unparsed"),
                    **{f"parts/{key}": value for key, value in verdict.parts.items()},
                }
            )

    def flush(self) -> dict[str, float]:
        """The averages since the last row."""
        row = {key: total / weight for key, (total, weight) in self._sums.items() if weight}
        if row:
            row["rollout/without_score"] = float(self.without_score)
            row |= {f"rollout/invalid/{why}": float(count) for why, count in self.invalid.items()}
        self._sums.clear()
        return row

    def state(self) -> dict[str, Any]:
        """Everything as plain data."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        vars(self).update(state)
