"""The tree of commands as completion needs it: names, options, and which function completes each argument."""

from __future__ import annotations

from typing import Any

from operant.cli.completion_table import cached


def command_table() -> dict[str, Any]:
    """The commands by name; building this loads all of them, so it is kept in the user's cache."""
    return cached("commands", _built)["commands"]


def _built() -> dict[str, Any]:
    from typer.main import get_command

    from operant.cli.commands import app

    return {"commands": _entry(get_command(app))["commands"]}


def _entry(command: Any) -> dict[str, Any]:
    """A command with its options and arguments, or a group with its commands."""
    about = command.get_short_help_str(100)
    if hasattr(command, "commands"):
        below = {name: _entry(each) for name, each in command.commands.items() if not each.hidden}
        return {"about": about, "commands": below}
    completers = _completers(command.callback)
    options, arguments = [], []
    for param in command.params:
        completer = completers.get(param.name, "")
        if param.param_type_name == "argument":
            arguments.append({"completer": completer, "many": param.nargs == -1})
        elif not param.hidden:
            names = [*param.opts, *param.secondary_opts]
            options.append({"names": names, "about": param.help, "takes": not param.is_flag, "completer": completer})
    options.append({"names": ["--help", "-h"], "about": "Show this message and exit.", "takes": False, "completer": ""})
    return {"about": about, "options": options, "arguments": arguments}


def _completers(callback: Any) -> dict[str, str]:
    """The name of the function that completes a parameter, for each that has one."""
    from typing import get_type_hints

    found = {}
    for name, hint in get_type_hints(callback, include_extras=True).items():
        for info in getattr(hint, "__metadata__", ()):
            if getattr(info, "autocompletion", None):
                found[name] = info.autocompletion.__name__
    return found
