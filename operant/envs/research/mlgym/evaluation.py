"""Their evaluation file, run in a fresh sandbox on pristine files and what the agent left.

A failure of the evaluation is the agent's only if the evaluation works: where it fails, it is tried on a submission
that is known to be good, and its packages are imported without anything of the agent's. If that fails too,
`GraderBroken` tells what is wrong with the task, and the agent is not fined.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from operant.envs.research.grading import GraderBroken, GraderFailed, Unfit, Work, finite
from operant.envs.research.mlgym.checkout import Checkout, tree_of
from operant.envs.research.mlgym.layouts import rows_of
from operant.envs.research.mlgym.remote import ANSWER, Relay, stubs
from operant.envs.research.mlgym.submission import SUBMISSION, Submission, asked_functions
from operant.envs.sandbox import Ran

GUARD = Path(__file__).with_name("guard.py")
GUARD_NAME = "_guard_evaluation.py"
REFUSAL = "a checkpoint may not hold"  # as the guard words it
WORDS = 500  # characters of what an evaluation complained about


class EvaluationFailed(Exception):
    """The evaluation file gave no score; whose fault that is is not yet known."""


@dataclass
class Evaluation:
    """The evaluation of a task (final): `pristine` are all its files.

    `measure` is the metric that counts, `splits` are texts among which are the names of the splits that are asked, and
    `models` folders of models that the starter code begins with. `apart`: programs run in a sandbox of their own.
    """

    checkout: Checkout
    submission: Submission
    measure: str
    seconds: float
    pristine: Mapping[str, bytes]
    splits: tuple[str, ...] = ()
    apart: bool = True
    models: tuple[str, ...] = ()
    _works: bool = field(default=False, init=False)
    _trouble: str | None = field(default=None, init=False)

    def grade(self, work: Work) -> float:
        """What the evaluation prints for an agent's work; `Unfit` or `GraderBroken` where it prints no score."""
        self._refuse_nothing(work)
        try:
            score = self._score(work, work.artefacts)
        except EvaluationFailed as failed:
            if trouble := self._own_trouble(work):
                raise GraderBroken(f"the evaluation of this task is broken: {trouble}") from failed
            if self._works or REFUSAL in str(failed):
                raise Unfit(f"the evaluation failed: {failed}") from failed
            raise GraderFailed(
                f"the evaluation failed, which has not been seen to score anything: {failed}"
            ) from failed
        self._works = True
        return finite(score, self.measure)

    def _refuse_nothing(self, work: Work) -> None:
        for name in self.submission.artefacts:
            if not any(given == name or (name.endswith("/") and given.startswith(name)) for given in work.artefacts):
                raise Unfit(f"there is no {name}")

    def _score(self, work: Work, artefacts: Mapping[str, bytes]) -> object:
        """The metric as it is printed; `EvaluationFailed` where there is none."""
        ran = self._relayed(work, artefacts) if self._is_remote else self._run(work, artefacts)
        if ran.code or ran.killed:
            raise EvaluationFailed(_why(ran, self.seconds))
        printed = ran.out.decode(errors="replace")
        for text in (printed, *reversed(printed.splitlines())):
            found = _metrics(text)
            if self.measure.lower() in found:
                return found[self.measure.lower()]
        raise EvaluationFailed(f"it printed no {self.measure}: {printed.strip()[-WORDS:] or 'it printed nothing'}")

    @property
    def _is_remote(self) -> bool:
        return self.apart and self.submission.form == "program"

    def _run(self, work: Work, artefacts: Mapping[str, bytes]) -> Ran:
        files = {**self.pristine, **artefacts, GUARD_NAME: GUARD.read_bytes()}
        with work.sandbox(files) as sandbox:
            return sandbox.run(self._command(sandbox.python), seconds=self.seconds, environment=self._environment(work))

    def _relayed(self, work: Work, artefacts: Mapping[str, bytes]) -> Ran:
        """With the agent's programs in one sandbox, and the evaluation with stubs of them in another."""
        asked = {name: asked_functions(self.checkout, name) for name in self.submission.artefacts}
        fair = {name: text for name, text in self.pristine.items() if name not in self._private}
        with work.sandbox({**fair, **artefacts}) as theirs, work.sandbox({**self.pristine, **stubs(asked)}) as ours:
            environment = self._environment(work)
            program = theirs.start([theirs.python, "-B", "-c", ANSWER], environment=environment)
            evaluation = ours.start([ours.python, "-B", self.checkout.evaluator], environment=environment)
            with closing(program), closing(evaluation):
                return Relay(evaluation, program, self.seconds).run()

    @property
    def _private(self) -> set[str]:
        """What the agent's program does not see while it is asked: the evaluation and its labels."""
        return {self.checkout.evaluator, *self.checkout.labels(dict(self.pristine))}

    def _command(self, python: str) -> list[str]:
        line = [self.checkout.evaluator, *self.submission.arguments]
        if self.submission.form not in ("model", "language model"):
            return [python, "-B", *line]
        return [python, "-B", GUARD_NAME, json.dumps(self._own_classes if self._unpickles else None), *line]

    @property
    def _own_classes(self) -> dict[str, list[str]]:
        """The classes of each module of the starter code; training saved those of its own file as __main__'s."""
        found: dict[str, list[str]] = {"__main__": []}
        for name, text in self.checkout.programs.items():
            classes = [node.name for node in tree_of(text).body if isinstance(node, ast.ClassDef)]
            module = name.removesuffix(".py").replace("/", ".")
            found |= {module: classes, module.rpartition(".")[2]: classes, "__main__": found["__main__"] + classes}
        return found

    @property
    def _unpickles(self) -> bool:
        """Whether a checkpoint is read by pickle: then it is kept to data."""
        return any(b"pickle" in text for text in self.checkout.programs.values())

    def _environment(self, work: Work) -> dict[str, str]:
        return {**work.packages.environment, **self.submission.environment}

    def _own_trouble(self, work: Work) -> str:
        """What is wrong with the evaluation itself; nothing where it works. It is found out once."""
        if self._trouble is None:
            self._trouble = "" if self._works else self._import_trouble(work) or self._control_trouble(work)
        return self._trouble

    def _import_trouble(self, work: Work) -> str:
        """What hinders the packages of the evaluation from being imported, with nothing of the agent's around."""
        with work.sandbox({}) as sandbox:
            line = [sandbox.python, "-B", "-c", "\n".join(self.checkout.evaluator_import_lines)]
            ran = sandbox.run(line, seconds=self.seconds, environment=self._environment(work))
        return f"its packages cannot be imported: {_why(ran, self.seconds)}" if ran.code or ran.killed else ""

    def _control_trouble(self, work: Work) -> str:
        """What becomes of the submissions that should be good; nothing where one is scored, or where there is none."""
        trouble = ""
        for what, artefacts in self._known_good().items():
            try:
                self._score(work, artefacts)
            except (EvaluationFailed, Unfit) as failed:
                trouble = trouble or f"it fails on {what} too: {failed}"
            else:
                self._works = True
                return ""
        return trouble

    def _known_good(self) -> dict[str, Mapping[str, bytes]]:
        """Submissions that should be scored: the programs as they were given, a sample, or the labels."""
        if self.submission.form == "program":
            return {"its own starter code": {name: self.pristine[name] for name in self.submission.artefacts}}
        if self.submission.form != "csv":
            return {f"the model {name} that it begins with": self._handed_in(name) for name in self.models}
        found = {}
        samples = [text for name, text in self.pristine.items() if "sample_submission" in name]
        for sample in [*([self.checkout.sample] if self.checkout.sample else []), *samples]:
            found["its sample submission"] = {SUBMISSION: sample}
            if rows := rows_of(dict(self.pristine), self.splits):
                found["its sample submission, repeated for every row"] = {SUBMISSION: _repeated(sample, rows)}
        labels = self.checkout.labels(dict(self.pristine))
        return {**found, **{f"the labels {name}": {SUBMISSION: text} for name, text in labels.items()}}

    def _handed_in(self, model: str) -> dict[str, bytes]:
        """The model that the starter code begins with, as if it had been trained."""
        folder = next((name for name in self.submission.artefacts if name.endswith("/")), "")
        inside = {name: data for name, data in self.pristine.items() if name.startswith(f"{model}/")}
        return {f"{folder}{name.removeprefix(f'{model}/')}": data for name, data in inside.items()}


def _repeated(sample: bytes, rows: int) -> bytes:
    """A table with so many rows, the sample's over and over."""
    head, *body = sample.splitlines()
    return b"\n".join([head, *(body[place % len(body)] for place in range(rows))]) if body else sample


def _metrics(text: str) -> dict[str, object]:
    """The metrics of a line by their names in small letters, which their files do not write alike everywhere."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {str(name).lower(): value for name, value in found.items()} if isinstance(found, dict) else {}


def _why(ran: Ran, seconds: float) -> str:
    if ran.timed_out:
        return f"its time was over after {seconds:g} s"
    if ran.killed:
        return f"it took too much {ran.killed}"
    return ran.err.decode(errors="replace").strip()[-WORDS:] or f"exit {ran.code}"
