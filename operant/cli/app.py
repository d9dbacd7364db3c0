"""The entry point, and the one place where an error becomes words and an exit code.

Nothing is loaded here before it is needed: the shell asks this program for completions at every press of TAB.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from contextlib import suppress
from io import TextIOWrapper
from typing import Any, NoReturn

from operant.errors import EXIT_DONE, OperantError, RunWarning, StoppedError

_INTERRUPTED = 130  # what Typer returns for a KeyboardInterrupt
COMPLETION_VARIABLE = "_OPERANT_COMPLETE"


def main() -> NoReturn:
    """The entry point of `operant` and of `python -m operant`."""
    # What a policy has said may hold characters that this terminal has not, and is told all the same.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if COMPLETION_VARIABLE in os.environ:
        from operant.cli.completion import answer

        # Whatever is wrong, the line that somebody is typing stays as it is.
        with suppress(Exception):
            answer(os.environ[COMPLETION_VARIABLE])
    code = run(sys.argv[1:])
    # All is said and done: a late Ctrl-C changes neither the exit code nor the last words.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def run(argv: list[str]) -> int:
    """Carry out one command line and return its exit code; an error is told, never thrown."""
    from operant.cli.commands import app

    try:
        with warnings.catch_warnings():
            _tell_run_warnings()
            code = app(argv or ["--help"], prog_name="operant", standalone_mode=False)
    except Exception as error:
        return _tell(_known(error, argv), as_json="--json" in argv)
    if code == _INTERRUPTED:
        return _tell(StoppedError("stopped by the user"), as_json="--json" in argv)
    return code if isinstance(code, int) else EXIT_DONE


def _tell_run_warnings() -> None:
    """Until the surrounding `catch_warnings` ends: what is wrong with a run is a line on standard error."""
    others = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, RunWarning):
            from operant.cli.output import aside

            aside(f"warning: {message}")
        else:
            others(message, category, *where, **more)

    warnings.simplefilter("always", RunWarning)
    warnings.showwarning = show


def _tell(error: OperantError, as_json: bool) -> int:
    from operant.cli.output import aside, document

    if as_json:
        document(error.as_dict())
    else:
        aside(str(error))
    return error.exit_code


def _known(error: Exception, argv: list[str]) -> OperantError:
    """Every exception as one that can be told: a typing mistake is the user's, anything else ours."""
    from typer.exceptions import TyperException

    from operant.cli.errors import defect, lacking, mistyped

    if isinstance(error, OperantError):
        return error
    if isinstance(error, TyperException):
        return mistyped(error, argv)
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("operant"):
        return lacking(error)
    return defect(error, argv)
