"""One agent at work on one research problem, from its first word to its verdict."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from random import Random
from typing import Any

from operant.envs.research import tools, wording
from operant.envs.research.commands import Misspoken, parse
from operant.envs.research.grading import GraderBroken, GraderFailed, Unfit
from operant.envs.research.rewards import improvement, penalty, schemes
from operant.envs.research.settings import Settings
from operant.envs.research.state import RolloutState, Start, Validated, decode_checkpoint, encode_checkpoint
from operant.envs.research.workspace import Interrupted, Workspace
from operant.envs.sandbox import SandboxDied
from operant.envs.text.dialogue import Dialogue, Message, Response
from operant.envs.text.task import Outcome, Verdict
from operant.errors import OperantError, UsageError

GRADER_FAILED = "grader_failed"  # the part of a verdict that counts graders which broke down
UNCLEAR = "this was not scored, and is no fault of yours as far as is known"
NOT_YOURS = "the validation itself failed; it was not counted"
LONGEST_FAULT = 400  # characters

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What a tool says, before it is put into a message."""

    text: str
    reward: float | None = None
    score: float | None = None
    fault: str | None = None
    done: bool = False


class Rollout(Dialogue):
    """An agent's dialogue with its workspace (final)."""

    def __init__(self, settings: Settings, problem: int, seed: int, start: Start) -> None:
        self._settings = settings
        self._problem, self._seed = problem, seed
        self._start = start
        self._state = RolloutState(replace(start.tally))
        files = settings.files(problem)
        self._files = tuple(files)
        disk = settings.folder.task.limits.sandbox().disk
        self._workspace = Workspace(settings.opened, files if start.files is None else start.files, disk, start.base)
        self._tools: dict[str, Callable[[Mapping[str, Any]], Answer]] = {
            "bash": self._bash,
            "view": self._view,
            "write": self._write,
            "edit": self._edit,
            "validate": self._validate,
            "submit": self._submit,
        }

    def opening(self) -> tuple[Message, ...]:
        """The manners and the problem; in style bare the problem alone."""
        problem = Message("user", wording.assignment(self._settings, self._files))
        if self._settings.style == "bare":
            return (problem,)
        words = f"{problem.text}\n{self._left}"
        return (Message("system", wording.manners(self._settings)), Message("user", words))

    def hear(self, text: str, cut: bool = False) -> Response:
        """Do the first action that the words ask for, and say what came of it and what is left.

        Whatever a policy says is answered. Only what the user of Operant has to mend is raised.
        """
        if self._state.ended:
            return Response(fault="the rollout has ended", done=True)
        self._state.tally.turns += 1
        tool, answer = self._answered(text, cut)
        if answer.done or self._spent:
            self._end()
        message = wording.answer(self._settings, answer.text, self._left, tool)
        return Response((message,), tool, answer.reward, answer.score, answer.fault, self._state.ended)

    def verdict(self) -> Verdict:
        """The hidden score of what was kept, normalized, and the rewards by scheme."""
        if not self._state.ended:
            self._end()
        if self._state.broken:
            return Verdict(None, "error", self._counts(), self._state.broken)
        broke = False
        try:
            raw, note = self._hidden_score(), ""
            score = self._settings.scale.normalized(raw)
        except Unfit as unfit:
            raw, score, note = self._settings.scale.baseline, 0.0, f"unfit: {self._why(unfit)}"
            broke = isinstance(unfit, GraderFailed)
        except GraderBroken as broken:
            return Verdict(None, "error", {**self._counts(), GRADER_FAILED: 1.0}, broken.cause)
        except Exception as problem:
            return Verdict(None, "error", self._counts(), f"the grading failed: {type(problem).__name__}: {problem}")
        parts = {"hidden": raw, **self._rewards(score), **self._counts(), **({GRADER_FAILED: 1.0} if broke else {})}
        return Verdict(score, self._outcome(score, note), parts, note)

    def snapshot(self) -> bytes:
        """The tally and the workspace, but none of the scores: who goes on from here earns their own."""
        in_memory = self._workspace.in_memory
        archive = self._workspace.snapshot()
        facts = {"task": self._settings.folder.task.name, "problem": self._problem, "tally": asdict(self._state.tally)}
        facts |= {"artefacts": _digest(self._collected()), "on_paper": in_memory}
        return json.dumps(facts).encode() + b"\n" + archive

    def checkpoint(self) -> bytes | None:
        """The workspace after the last turn, with the tally and all scores."""
        files, base = {}, None
        if not self._state.ended:
            try:
                files, base = self._workspace.state()
            except Interrupted:
                self._state.interrupted = True  # the policy has not heard of it yet
                raise
        return encode_checkpoint(self._state, self._start, files, base, self._workspace.reopened)

    @classmethod
    def restored(cls, settings: Settings, problem: int, seed: int, checkpoint: bytes) -> Rollout:
        """The rollout itself as it was at its checkpoint."""
        state, start, reopened = decode_checkpoint(checkpoint)
        rollout = cls(settings, problem, seed, start)
        rollout._state, rollout._workspace.reopened = state, reopened
        return rollout

    def close(self) -> None:
        """End the sandbox."""
        self._state.ended = True
        self._workspace.close()

    @property
    def _left(self) -> wording.Left:
        settings, tally = self._settings, self._state.tally
        seconds = settings.folder.task.limits.total_seconds - tally.seconds
        return wording.Left(tally.turns, settings.turns, settings.validations - tally.validations, seconds)

    @property
    def _spent(self) -> bool:
        return self._state.tally.turns >= self._settings.turns or self._left.seconds <= 0

    def _answered(self, text: str, cut: bool) -> tuple[str | None, Answer]:
        """The tool that was asked for and its answer: the one place where what goes wrong becomes words.

        What the policy did wrong is a fault of its own. A sandbox that died was opened anew, or there is none to go on
        with. Anything else is a defect of ours, which costs the policy nothing, is counted, and is logged.
        """
        tool = None
        try:
            action = parse(text, cut)
            tool = action.tool
            if self._state.interrupted:
                self._state.interrupted = False
                raise Interrupted("the sandbox died after the last turn, and was made anew")
            answer = self._tools[tool](action.arguments)
            more = action.more and self._settings.style == "words"
            return tool, replace(answer, text=f"{answer.text}\n{wording.MORE}") if more else answer
        except Interrupted:
            return tool, Answer("[interrupted]" if self._settings.style == "bare" else wording.INTERRUPTED)
        except SandboxDied as died:
            self._state.broken = died.cause
            return tool, Answer("[no sandbox could be opened]", done=True)
        except UsageError:
            raise
        except (Misspoken, OperantError) as problem:
            return tool, self._faulty(problem.cause if isinstance(problem, OperantError) else str(problem))
        except Exception:
            self._count_tool_error(tool)
            return tool, Answer("[failed]" if self._settings.style == "bare" else wording.TOOL_ERROR)

    def _count_tool_error(self, tool: str | None) -> None:
        """Count and log the exception in hand, which is a defect of ours or of a grader."""
        self._state.tool_errors += 1
        log.exception("task %s: %s failed", self._settings.folder.task.name, tool or "reading a message")

    def _faulty(self, reason: str) -> Answer:
        reason = tools.abridged(reason, LONGEST_FAULT)
        each, faults = self._settings.fault_penalty, self._state.tally.faults
        self._state.tally.faults += 1
        cost = penalty(faults + 1, each) - penalty(faults, each)
        return Answer(wording.fault(self._settings, reason), reward=-cost, fault=reason)

    def _bash(self, arguments: Mapping[str, Any]) -> Answer:
        environment = self._settings.folder.packages.environment
        return self._timed(lambda seconds: tools.bash(self._workspace, arguments, seconds, environment))

    def _view(self, arguments: Mapping[str, Any]) -> Answer:
        return self._timed(lambda seconds: tools.view(self._workspace, arguments, seconds))

    def _timed(self, run: Callable[[float], tools.Ran]) -> Answer:
        with self._clock():
            ran = run(min(self._settings.folder.task.limits.seconds, self._left.seconds))
        return Answer(tools.command_output(ran, self._settings.output_bytes))

    def _write(self, arguments: Mapping[str, Any]) -> Answer:
        with self._clock():
            words = tools.write(self._workspace, arguments)
        return Answer(wording.done(self._settings, words))

    def _edit(self, arguments: Mapping[str, Any]) -> Answer:
        with self._clock():
            words = tools.edit(self._workspace, arguments, self._settings.largest)
        return Answer(wording.done(self._settings, words))

    @contextmanager
    def _clock(self) -> Iterator[None]:
        """What is done here takes of the time that there is, even if it fails: a write may meet a pipe, and wait."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._state.tally.seconds += time.monotonic() - began

    def _submit(self, arguments: Mapping[str, Any]) -> Answer:
        del arguments
        return Answer("end" if self._settings.style == "bare" else "submitted", done=True)

    def _validate(self, arguments: Mapping[str, Any]) -> Answer:
        del arguments
        if self._left.validations <= 0:
            return self._faulty("no validations are left")
        self._workspace.save()
        artefacts = self._collected()
        # Another draw for the same files would make the better of two a reward for nothing but asking again.
        same = next((each for each in self._state.validated if each.artefacts == artefacts), None)
        if same is not None:
            self._state.tally.validations += 1
            return self._scored(same.shown, artefacts)
        which = self._seed, self._state.tally.validations
        seed = self._settings.seed("validation", self._problem, *which)
        self._state.tally.validations += 1
        try:
            raw = self._settings.grade(artefacts, "validation", seed, self._problem)
        except GraderFailed as failed:
            self._count_tool_error("validate")
            return Answer(f"{UNCLEAR}: {tools.abridged(failed.cause, LONGEST_FAULT)}")
        except Unfit as unfit:
            return self._faulty(f"this cannot be scored: {self._why(unfit)}")
        except UsageError:
            raise
        except Exception:
            self._state.tally.validations -= 1
            self._count_tool_error("validate")
            return Answer(NOT_YOURS)
        luck = Random(self._settings.seed("noise", self._problem, *which)).gauss(0, 1)
        return self._scored(raw + self._settings.noise * luck, artefacts)

    def _scored(self, shown: float, artefacts: Mapping[str, bytes]) -> Answer:
        scale = self._settings.scale
        normalized = scale.normalized(shown)
        reward = improvement(normalized, self._state.tally.previous)
        self._state.tally.previous = normalized
        self._state.validated.append(Validated(shown, normalized, artefacts))
        best = scale.best([each.shown for each in self._state.validated])
        return Answer(wording.scored(self._settings, shown, best, self._left.validations), reward, shown)

    def _collected(self) -> dict[str, bytes]:
        """The declared artefacts that are plain files of a fair size; others are as if they were not there."""
        found: dict[str, bytes] = {}
        self._state.refused = {}
        for name in self._settings.folder.task.artefacts:
            try:
                if name.endswith("/"):
                    found |= self._workspace.read_folder(name, self._settings.largest)
                else:
                    found[name] = self._workspace.read(name, self._settings.largest)
            except (Interrupted, SandboxDied, UsageError):
                raise
            except OperantError as problem:
                self._state.refused[name] = problem.cause
        return found

    def _why(self, unfit: Unfit) -> str:
        """Why something cannot be scored; where files were not taken, why that is."""
        return "; ".join(dict.fromkeys([unfit.cause, *self._state.refused.values()]))

    def _end(self) -> None:
        """Take what is there to be graded; of work that died with its sandbox, what is known of it.

        Who can kill their sandbox must not thereby escape a score. Without any sandbox nothing can be graded.
        """
        self._state.ended = True
        try:
            if not self._state.broken and not (self._state.validated and self._settings.keep == "best"):
                self._state.final = self._collected_anew()
        except SandboxDied as died:
            self._state.broken = f"at the end of the work {died.cause}"
        self._workspace.close()

    def _collected_anew(self) -> dict[str, bytes]:
        """The artefacts; where the sandbox dies meanwhile, those of the workspace as it is made anew."""
        try:
            return self._collected()
        except Interrupted:
            return self._collected()

    def _kept(self) -> Mapping[str, bytes]:
        """What is graded: what was best when it was validated, or what was there at the end."""
        if self._state.final is not None:
            return self._state.final
        best = self._settings.scale.best([each.shown for each in self._state.validated])
        return next(each.artefacts for each in self._state.validated if each.shown == best)

    def _hidden_score(self) -> float:
        return self._settings.grade(self._kept(), "hidden", self._settings.seed("hidden", self._problem), self._problem)

    def _outcome(self, score: float, note: str) -> Outcome:
        slack = self._settings.folder.task.noise / self._settings.scale.span
        if note or score <= 0:
            return "wrong"
        return "right" if score >= 1 - slack - 1e-9 else "partial"

    def _rewards(self, score: float) -> dict[str, float]:
        validated = [each.normalized for each in self._state.validated]
        start, faults = self._start.tally, self._state.tally.faults
        return schemes(score, validated, start.previous, faults, self._settings.fault_penalty)

    def _counts(self) -> dict[str, float]:
        tally = self._state.tally
        counts = {"faults": tally.faults, "validations": tally.validations, "reopened": self._workspace.reopened}
        counts |= {"tool_errors": self._state.tool_errors}
        began_with = None if self._state.broken else self._start.artefacts
        inherited = began_with is not None and _digest(self._kept()) == began_with
        return {name: float(count) for name, count in {**counts, "inherited": inherited}.items()}


def _digest(artefacts: Mapping[str, bytes]) -> str:
    whole = blake2b(digest_size=16)
    for name, data in sorted(artefacts.items()):
        whole.update(f"{name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()
