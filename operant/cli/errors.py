"""Other exceptions as an `OperantError`: a mistyped command line, or a defect."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
import traceback
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from typer.exceptions import TyperException

from operant.errors import EXIT_FAILED, OperantError, UsageError

DEBUG_VARIABLE = "OPERANT_DEBUG"


class Defect(OperantError):
    """Something we did not foresee; the traceback is in a file."""

    exit_code = EXIT_FAILED
    kind = "defect"


def mistyped(error: TyperException, argv: list[str]) -> UsageError:
    """An unknown command or option, a missing argument, a value of the wrong type."""
    context: Any = getattr(error, "ctx", None)
    message = error.format_message().strip().rstrip(".")
    option = getattr(error, "option_name", None)
    if context is not None and message.startswith("No such command"):
        return _unknown("command", message.split("'")[1], list(context.command.commands), argv, "operant --help")
    path = context.command_path if context is not None else "operant"
    if context is not None and option is not None and message.startswith("No such option"):
        known = [name for param in context.command.params for name in param.opts]
        if "--set" in known and (setting := _as_setting(option, argv)) is not None:
            return setting
        return _unknown("option", option, known, argv, f"{path} --help")
    return UsageError(message[:1].lower() + message[1:], remedy=f"{path} --help")


def _as_setting(option: str, argv: list[str]) -> UsageError | None:
    """`--lr 1e-3` where `lr` is a setting of the spec that is named: the same command line with -s in its place."""
    from operant.api.specs import paths_named
    from operant.spec.load import load

    typed, _, given = option.partition("=")
    at = next((i for i, word in enumerate(argv) if word.partition("=")[0] == typed), None)
    if at is None:
        return None
    given = given or argv[at].partition("=")[2]
    words = 1 if given or at + 1 >= len(argv) else 2
    target = next((word for word in argv[1:at] + argv[at + words :] if not word.startswith("-")), None)
    try:
        data = load(target, None, []).spec.model_dump(mode="json") if target else {}
    except OperantError:
        return None
    paths = paths_named(typed.lstrip("-").replace("-", "_"), data)
    if not paths:
        return None
    value = given or (argv[at + 1] if words == 2 else "VALUE")
    mended = shlex.join(["operant", *argv[:at], "-s", f"{paths[0]}={value}", *argv[at + words :]])
    return UsageError(f"there is no option {typed}; -s sets {' or '.join(paths)}", remedy=mended)


def _unknown(kind: str, typed: str, known: list[str], argv: list[str], help_command: str) -> UsageError:
    """The nearest word, and the same command line with it in place."""
    near = get_close_matches(typed, known, n=1, cutoff=0.7)
    if not near:
        return UsageError(f"there is no {kind} {typed}", remedy=help_command)
    mended = shlex.join(["operant", *(near[0] if word == typed else word for word in argv)])
    return UsageError(f"there is no {kind} {typed}; did you mean {near[0]}?", remedy=mended)


def lacking(error: ModuleNotFoundError) -> UsageError:
    """A package that some command needs and that is not installed."""
    from operant.install import missing_package

    return missing_package((error.name or "?").partition(".")[0], "this command")


def defect(error: Exception, argv: list[str]) -> Defect:
    """Keep the traceback in a file and say in one line what happened."""
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error, file=sys.stderr)
        return Defect(_headline(error))
    kept = _keep_traceback(error, argv)
    return Defect(_headline(error), remedy=f"the traceback is in {kept}; {DEBUG_VARIABLE}=1 prints it")


def _headline(error: Exception) -> str:
    message = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {message[0]}" if message else type(error).__name__
    return f"unexpected {what} (a defect of Operant, please report it)"


def _keep_traceback(error: Exception, argv: list[str]) -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "operant"
    text = shlex.join(["operant", *argv]) + "\n\n" + "".join(traceback.format_exception(error))
    name = f"error-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    for folder in (state, Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            return folder / name
        except OSError:
            continue
    return Path(os.devnull)
