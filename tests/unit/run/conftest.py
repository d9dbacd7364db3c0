"""Shared by the tests of the run room: the toy trainer, and real processes to kill."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]

# The helper scripts beside the tests are run as programs and imported as modules.
sys.path.insert(0, str(HERE))

Start = Callable[..., subprocess.Popen[str]]


def _command(words: tuple[object, ...]) -> list[str]:
    return [sys.executable, *map(str, words)]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY), str(HERE)))}


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python on a script or a piece of code; whatever still runs at the end of the test is killed."""
    children: list[subprocess.Popen[str]] = []

    def start_python(*words: object) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        children.append(subprocess.Popen(_command(words), stdout=pipe, stderr=pipe, text=True, env=_environment()))
        return children[-1]

    yield start_python
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def start_with_errors_to() -> Start:
    """Starts Python with its standard error appended to a file, as a launcher would."""

    def start_python(log: Path, *words: object) -> subprocess.Popen[str]:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a") as errors:
            return subprocess.Popen(_command(words), stderr=errors, text=True, env=_environment())

    return start_python
