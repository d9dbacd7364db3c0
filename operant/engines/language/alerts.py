"""Alerts: what goes wrong quietly with language models is reported, once for each kind."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from operant.engines.language.config import text_of
from operant.engines.language.rollouts.types import Group
from operant.errors import RunError

if TYPE_CHECKING:
    from operant.engines.language.build import TrainingContext
    from operant.spec.schema import Spec

SILENT_ROUNDS = 8
MANY = 0.5
SHOWN = 160


def _validation(spec: Spec) -> str:
    """The command that checks the verifier of a spec."""
    name, arguments = spec.env.name, text_of(spec).arguments
    return shlex.join(["operant", "tasks", "validate", name, *_options(arguments)])


def _options(arguments: Mapping[str, object]) -> list[str]:
    said = ((key, value if isinstance(value, str) else json.dumps(value)) for key, value in arguments.items())
    return [word for key, value in said for word in ("-a", f"{key}={value}")]


class Alerts:
    """Checks the rounds of a session; `tell(kind, message)` reports."""

    def __init__(self, context: TrainingContext, tell: Callable[[str, str], None]) -> None:
        self.context = context
        self._tell = tell
        self._told: set[str] = set()

    def check_round(self, groups: Sequence[Group]) -> None:
        """Alert to answers that cannot be read, are cut off, or are all worth the same; stop if none has a score."""
        answers = [(group, answer) for group in groups for answer in group.answers]
        if not answers:
            note = next((note for group in groups for note in group.errors), "no reason given")
            raise RunError(
                f"not one answer of this round could be scored: {note}",
                remedy=f"{_validation(self.context.spec)}    (scores gold answers without a model)",
            )
        self._check_invalid(groups, len(answers))
        group, answer = answers[0]
        text = answer.completion.text[:SHOWN]
        unread = sum(each.verdict.outcome == "unparsed" for _, each in answers) / len(answers)
        if unread > MANY:
            self.once("unparsed", f"no answer was found in {unread:.0%} of the completions; one of them: {text!r}")
        cut = [each for _, each in answers if each.completion.finish == "length"]
        if len(cut) > MANY * len(answers) and not any(each.reward for each in cut):
            share, limit = len(cut) / len(answers), group.prompt.max_tokens
            words = f"{share:.0%} of the completions were cut off at {limit} tokens (env.text.max_tokens), all worth 0"
            self.once("truncated", words)
        if self.context.tracker.silent_rounds >= SILENT_ROUNDS:
            self.once(
                "no_signal",
                f"in {SILENT_ROUNDS} rounds no rewards differed from their baseline, so nothing was learnt; "
                f"an answer worth {answer.reward:g}: {text!r}",
            )

    def _check_invalid(self, groups: Sequence[Group], valid: int) -> None:
        """Tell for each reason how many verdicts are invalid, and of one what is said."""
        found: dict[str, list[str]] = {}
        for why, note in (each for group in groups for each in group.invalid):
            found.setdefault(why, []).append(note)
        every = valid + sum(map(len, found.values()))
        for why, notes in found.items():
            words = f"{len(notes) / every:.0%} of the completions have no score and are not learnt from"
            self.once("errors" if why == "error" else f"invalid {why}", f"{words}; one of them: {notes[0]}")

    def check_mismatch(self, means: Mapping[str, float]) -> None:
        """Stop a run whose generator and trainer do not give the same tokens the same probabilities."""
        limit, found = self.context.settings.mismatch_limit, means.get("mismatch/kl")
        if limit is not None and found is not None and not found <= limit:
            raise RunError(
                f"generator and trainer disagree by {found:.3g} nats per token, above mismatch_limit {limit:g}",
                remedy="agent.model.dtype float32, or agent.algorithm.importance truncate with a higher mismatch_limit",
            )

    def once(self, kind: str, message: str) -> None:
        """Tell a kind of trouble the first time it shows in this attempt."""
        if kind not in self._told:
            self._told.add(kind)
            self._tell(kind, message)
