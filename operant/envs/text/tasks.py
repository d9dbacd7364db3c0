"""Language tasks by name: those of Operant, and one's own without a change to this package.

* `gsm8k`, `my_module:MyTask`: a registered name, or a class by its import path, see `operant.envs.registry`;
* `problems.jsonl`: a file of one's own, the task `jsonl` with this `path`;
* `blotto`: a research task that comes with Operant, or `./folder` with a task.yaml of one's own;
* `mlgym:FILE`: a task file of one's own MLGym checkout;
* `verifiers:ID`: an environment of the package verifiers, which plays and scores its problems itself.

Nothing of a task is loaded before it is asked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from operant.envs import registry
from operant.envs.builtin import TASKS
from operant.envs.research.catalogue import about, is_folder, shipped
from operant.envs.text.task import Task
from operant.errors import UsageError
from operant.registry import load

FILES = (".jsonl", ".jsonl.gz")
RESEARCH = "operant.envs.research.workbench:ResearchTask"
EXTERNAL = "verifiers:"


def task_names() -> list[tuple[str, str]]:
    """Every name that can be asked for, with one line about it."""
    research = {name: about(folder) for name, folder in shipped().items()}
    ours = {name: line for name, line in registry.names("task").items() if name in TASKS}
    return list({**ours, **research, **registry.names("task")}.items())


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
    if name.startswith(EXTERNAL):
        from operant.envs.verifiers.task import split_arguments

        given = split_arguments(name, given)
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
    return name.startswith(EXTERNAL) or argument in accepted_arguments(class_of(name))


def class_of(name: str) -> type[Task]:
    """The class behind a task's name."""
    name = "jsonl" if name.endswith(FILES) else name
    if name.startswith(EXTERNAL):
        return load("operant.envs.verifiers.task:VerifiersTask", name)
    if name not in TASKS and is_folder(name):
        return load(RESEARCH, f"task {name}")
    path = registry.find(name, "task", f"task {name}")
    if path is not None:
        return load(path, f"task {name}")
    near = get_close_matches(name, [*shipped(), *registry.names("task")], n=3, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else "operant tasks    (lists them)"
    raise UsageError(f"there is no task {name!r}", remedy=remedy)


def _refuse_unknown_arguments(name: str, kind: type[Task], given: Mapping[str, Any]) -> None:
    accepted = accepted_arguments(kind)
    for argument in given:
        if argument not in accepted:
            near = get_close_matches(argument, accepted, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"it takes {', '.join(accepted) or 'none'}"
            raise UsageError(f"task {name} has no argument {argument!r}", remedy=remedy)
