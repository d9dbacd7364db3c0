"""Tasks by name: those of Operant, and one's own without a change to this package.

* `gsm8k`: a name of the table below;
* `problems.jsonl`: a file of one's own, the task `jsonl` with this `path`;
* `my_module:MyTask`: a class by its import path;
* `mine`: a name in the entry-point group `operant.tasks` of an installed package;
* `blotto`: a research task that comes with Operant, or `./folder` with a task.yaml of one's own;
* `mlgym:FILE`: a task file of one's own MLGym checkout;
* `verifiers:ID`: an environment of the package verifiers, which plays and judges its problems itself.

Nothing of a task is loaded before it is asked for.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from operant.envs.research.catalogue import about, is_folder, shipped
from operant.envs.text.task import Task
from operant.errors import UsageError
from operant.install import missing_package

GROUP = "operant.tasks"
FILES = (".jsonl", ".jsonl.gz")
HERE = "operant.envs.text"
RESEARCH = "operant.envs.research.workbench:ResearchTask"
GUESTS = "verifiers:"

TASKS: dict[str, tuple[str, str]] = {
    "arithmetic": (f"{HERE}.arithmetic:Arithmetic", "sums, differences, products, the multiplication table"),
    "countdown": (f"{HERE}.countdown:Countdown", "reach a target with a few numbers, each used once"),
    "largest": (f"{HERE}.number_lists:Largest", "the largest of a few numbers"),
    "count_letters": (f"{HERE}.letters:CountLetters", "how often a letter occurs in a string"),
    "sort": (f"{HERE}.number_lists:Sort", "a few numbers from the smallest to the largest"),
    "copy": (f"{HERE}.letters:Copy", "a string of letters again, with credit for each in its place"),
    "gsm8k": (f"{HERE}.word_problems:Gsm8k", "grade-school mathematics in words (needs data)"),
    "svamp": (f"{HERE}.word_problems:Svamp", "short sums in words with a twist (needs data)"),
    "math": (f"{HERE}.competition:Math", "competition mathematics, answers in LaTeX (needs data)"),
    "mbpp": (f"{HERE}.mbpp:Mbpp", "short Python functions with tests, run in the sandbox (needs data)"),
    "humaneval": (f"{HERE}.humaneval:HumanEval", "Python functions to complete, run in the sandbox (needs data)"),
    "ifeval": (f"{HERE}.ifeval:IfEval", "instructions whose following can be checked (needs data)"),
    "reasoning_gym": (f"{HERE}.reasoning:ReasoningGym", "any dataset of the package reasoning-gym"),
    "hackmatrix": (f"{HERE}.hacking:HackMatrix", "the best next move of the grid hacking game, from a board in words"),
    "guess": (f"{HERE}.guessing:Guess", "a number found by guessing higher and lower, in several turns"),
    "hackmatrix_game": (f"{HERE}.hacking_game:HackMatrixGame", "whole games of it, one action a turn"),
    "jsonl": (f"{HERE}.own:OwnProblems", "a JSONL file of one's own, with a verifier by name or import path"),
}


def task_names() -> list[tuple[str, str]]:
    """Every name that can be asked for, with one line about it."""
    own = [(entry.name, f"of your own, from {entry.value}") for entry in entry_points(group=GROUP)]
    research = [(name, about(folder)) for name, folder in shipped().items()]
    return [*((name, line) for name, (_, line) in TASKS.items()), *research, *own]


def make_task(name: str, arguments: Mapping[str, Any], label: str | None = None) -> Task:
    """The task `name` with these arguments; `UsageError` for a name or an argument that does not exist.

    `label` is what the task and its problems call themselves instead, so that a mixture may hold one task twice.
    """
    given = dict(arguments)
    if name.endswith(FILES):
        given = {"path": name, **given}
    if name not in TASKS and is_folder(name):
        given = {"folder": name, **given}
    kind = class_of(name)
    if name.startswith(GUESTS):
        from operant.envs.verifiers.task import own_and_handed_on

        given = own_and_handed_on(name, given)
    _refuse_unknown_arguments(name, kind, given)
    try:
        task = kind(**given)
    except TypeError as problem:
        raise UsageError(f"task {name}: {problem}", remedy=f"operant tasks show {name}") from problem
    task.name = label or task.name
    task.recipe = (name, dict(arguments), label)
    return task


def accepted_arguments(kind: type[Task]) -> dict[str, inspect.Parameter]:
    """The arguments that a task takes, those that it hands on to its base included."""
    found: dict[str, inspect.Parameter] = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        named = [one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
        found |= {one.name: one for one in named if one.name not in found}
        if len(named) == len(parameters):
            break
    if "name" in found and found["name"].default is inspect.Parameter.empty:
        del found["name"]  # a base's word for what its subclass is called
    return found


def takes_argument(name: str, argument: str) -> bool:
    """Whether a task takes an argument; an environment of verifiers says so itself, when it is opened."""
    return name.startswith(GUESTS) or argument in accepted_arguments(class_of(name))


def class_of(name: str) -> type[Task]:
    """The class behind a task's name."""
    name = "jsonl" if name.endswith(FILES) else name
    if name.startswith(GUESTS):
        return _imported(name, "operant.envs.verifiers.task:VerifiersTask")
    installed = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    if name in TASKS:
        return _imported(name, TASKS[name][0])
    if is_folder(name):
        return _imported(name, RESEARCH)
    if name in installed or ":" in name:
        return _imported(name, installed.get(name, name))
    near = get_close_matches(name, [*TASKS, *shipped(), *installed], n=3, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else "operant tasks    (lists them)"
    raise UsageError(f"there is no task {name!r}", remedy=remedy)


def _imported(name: str, path: str) -> type[Task]:
    found = imported(path, f"task {name}")
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise UsageError(f"task {name}: {path} is no Task", remedy="subclass operant.envs.text.task.Task")
    return found


def imported(path: str, wanted_by: str) -> Any:
    """What `module:name` is; the module is looked for where Python looks, and then in the working directory."""
    module_name, _, attribute = path.partition(":")
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        sys.path.append(here)  # last, so that a file here never stands in for an installed package
    try:
        module = import_module(module_name)
    except Exception as problem:
        raise _not_imported(module_name, wanted_by, problem) from problem
    if not hasattr(module, attribute):
        near = get_close_matches(attribute, vars(module), n=1, cutoff=0.0)
        raise UsageError(f"{wanted_by}: {module_name} has no {attribute}", remedy=f"did you mean {''.join(near)}?")
    return getattr(module, attribute)


def _not_imported(module: str, wanted_by: str, problem: Exception) -> UsageError:
    absent = problem.name if isinstance(problem, ModuleNotFoundError) else None
    if absent and not f"{module}.".startswith(f"{absent}."):
        return missing_package(absent, wanted_by)
    return UsageError(
        f"{wanted_by}: {module} cannot be imported: {type(problem).__name__}: {problem}",
        remedy=f'see where: python -c "import {module}"',
    )


def _refuse_unknown_arguments(name: str, kind: type[Task], given: Mapping[str, Any]) -> None:
    accepted = accepted_arguments(kind)
    for argument in given:
        if argument not in accepted:
            near = get_close_matches(argument, accepted, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"it takes {', '.join(accepted) or 'none'}"
            raise UsageError(f"task {name} has no argument {argument!r}", remedy=remedy)
