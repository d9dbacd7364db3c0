"""What their task classes score: which files an agent hands in, and the command that evaluates them.

A folder is written with a slash at its end. Code of the agent's is handed in by tasks of programs alone; with a
checkpoint, the model's class is the one of the starter code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from operant.envs.research.mlgym.checkout import Checkout, tree_of
from operant.errors import UsageError

Form = Literal["csv", "model", "language model", "program"]

FORMS: dict[str, Form] = {
    "CSVSubmissionTasks": "csv",
    "ModelSubmissionTasks": "model",
    "LMSubmissionTasks": "language model",
    "PythonSubmissionTasks": "program",
}
SUBMISSION = "submission.csv"
FORMAT = "SUBMISSION FORMAT"
LISTED = re.compile(r"^\s*\d+\.\s*`([\w./-]+)`", re.MULTILINE)
# One process, which is what their launcher starts on a machine with one accelerator.
ONE_PROCESS = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@dataclass(frozen=True)
class Submission:
    """What is handed in: its form, the artefacts, and the evaluation's command line and environment."""

    form: Form
    artefacts: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: dict[str, str]

    @property
    def programs(self) -> tuple[str, ...]:
        """The artefacts that are code, or may hold some."""
        return tuple(name for name in self.artefacts if name.endswith((".py", "src/")))


def submission_of(checkout: Checkout, named: Sequence[str] = ()) -> Submission:
    """What a task's file says is handed in, or what `named` says instead."""
    form = FORMS.get(checkout.sheet.task_entrypoint, "csv")
    artefacts = tuple(named) or _artefacts(checkout, form)
    arguments: tuple[str, ...] = ()
    if form == "csv":
        arguments = ("--submission_file", SUBMISSION)
    elif form == "model" and (config := next((name for name in artefacts if name.endswith(".yaml")), None)):
        arguments = ("--config_fname", config)
    return Submission(form, artefacts, arguments, ONE_PROCESS if form == "language model" else {})


def asked_functions(checkout: Checkout, program: str) -> tuple[str, ...]:
    """What the rest of the starter code imports of a program that is handed in."""
    module = program.removesuffix(".py").replace("/", ".")
    found: set[str] = set()
    for name, text in checkout.programs.items():
        if name != program:
            found |= {
                alias.name
                for node in ast.walk(tree_of(text))
                if isinstance(node, ast.ImportFrom) and node.module == module
                for alias in node.names
            }
    return tuple(sorted(found))


def _artefacts(checkout: Checkout, form: Form) -> tuple[str, ...]:
    if form == "csv":
        return (SUBMISSION,)
    if form == "program":
        return _programs(checkout)
    listed = LISTED.findall(checkout.sheet.description.partition(FORMAT)[2])
    if not listed:
        raise UsageError(
            f"its entry point {checkout.sheet.task_entrypoint} does not say which files are scored,"
            f" nor does a numbered list under {FORMAT} in its description",
            place=checkout.sheet.place("description"),
            remedy='-a artefacts=\'["checkpoints/", "config.yaml"]\'',
        )
    return tuple(_where(checkout, name) for name in listed)


def _programs(checkout: Checkout) -> tuple[str, ...]:
    """The programs that are neither the evaluation's nor the other side's: those that the description names."""
    fixed = {*checkout.sheet.evaluation_paths, *checkout.opponents}
    free = tuple(name for name in checkout.programs if name not in fixed)
    named = tuple(name for name in free if Path(name).name in checkout.sheet.description)
    if not free:
        raise UsageError(
            "there is no program in its starter_code that could be handed in",
            place=checkout.sheet.place("starter_code"),
            remedy="-a artefacts='[\"strategy.py\"]'",
        )
    return named or free


def _where(checkout: Checkout, name: str) -> str:
    """A file as the starter code has it, wherever that is; a name without an extension is a folder's."""
    if not Path(name).suffix:
        return f"{name.rstrip('/')}/"
    return next((known for known in checkout.starter if Path(known).name == name), name)
