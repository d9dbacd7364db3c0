"""Environments by name: those of Operant, of installed packages, and of modules in the working directory.

A name stands for one object:

* a name in the table `operant.envs.builtin`, or in the entry-point group `operant.envs` of an installed package
  (`operant.tasks` is read too), both of which say `module:object`;
* `module:object` itself, see `operant.registry`.

The object says what it is: a subclass of `gymnasium.Env` or a function that makes one, a subclass of `FunctionalEnv`,
a subclass of `Task`, or an `Environment`, which names several of these forms and what else is known of them.
Nothing of an environment is imported before it is asked for.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from typing import Any, Literal

from operant.envs.builtin import BUILTIN
from operant.envs.environment import Environment
from operant.errors import UsageError
from operant.registry import installed, load

GROUPS = ("operant.envs", "operant.tasks")
Kind = Literal["gymnasium", "functional", "task"]
WORDS: dict[Kind, tuple[str, str]] = {
    "gymnasium": ("a gymnasium.Env or a function that makes one", "class {name}(gymnasium.Env): ...    (in its file)"),
    "functional": ("a FunctionalEnv", "subclass operant.envs.functional.env.FunctionalEnv"),
    "task": ("a Task", "subclass operant.envs.text.task.Task"),
}


def registered(name: str) -> Environment | str | None:
    """What the table or an entry point has for `name`: a declaration or `module:object`; None for no such name."""
    return BUILTIN.get(name) or _installed().get(name)


def names(kind: Kind) -> dict[str, str]:
    """Names of a kind with a line about each; the kind of an installed package's is known only after an import."""
    ours = {name: found for name in BUILTIN if getattr(found := declaration(name), kind)}
    return {name: found.about for name, found in ours.items()} | {
        name: f"of your own, from {value}" for name, value in _installed().items() if name not in BUILTIN
    }


def declaration(name: str, wanted_by: str = "env.name") -> Environment:
    """All that is declared of `name`; an object that is one form itself declares just that."""
    found = registered(name)
    if isinstance(found, Environment):
        return found
    path = found or name
    if ":" not in path:
        return Environment()
    loaded = load(path, wanted_by)
    if isinstance(loaded, Environment):
        return loaded
    kind = _kind_of(loaded)
    return Environment() if kind is None else replace(Environment(), **{kind: path})


def find(name: str, kind: Kind, wanted_by: str = "env.name") -> str | None:
    """`module:object` of `name` in one form; None for a name that is not registered, `UsageError` for another form."""
    if registered(name) is None and ":" not in name:
        return None
    found = declaration(name, wanted_by)
    path = getattr(found, kind)
    if path is not None:
        return path
    what, remedy = WORDS[kind]
    other = next((f" but {WORDS[each][0]}" for each in WORDS if getattr(found, each)), "")
    raise UsageError(f"{wanted_by}: {name} is not {what}{other}", remedy=remedy.format(name=name.rpartition(":")[2]))


def _kind_of(found: Any) -> Kind | None:
    """What an object is; JAX is not imported for this: a subclass of its environment has imported it."""
    if not isinstance(found, type):
        return "gymnasium" if inspect.isfunction(found) else None
    functional = sys.modules.get("operant.envs.functional.env")
    if functional is not None and issubclass(found, functional.FunctionalEnv):
        return "functional"
    from operant.envs.text.task import Task

    if issubclass(found, Task):
        return "task"
    gymnasium = sys.modules.get("gymnasium")
    return "gymnasium" if gymnasium is not None and issubclass(found, gymnasium.Env) else None


def _installed() -> dict[str, str]:
    """Names in the entry points of installed packages."""
    return {name: value for group in GROUPS for name, value in installed(group).items()}
