"""The verifier of programs: a verdict that no program can give itself.

The program runs in a fresh sandbox, its tests run outside in a grader of their own, and between them go plain
values (code_wire, code_runner, code_grader). An exit code, a printed word or an object that equals everything
says nothing here.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from operant.envs.sandbox import Limits, Running, SandboxDied, SandboxKilled, open_sandbox, retried
from operant.envs.text.code_grader import ENDED
from operant.envs.text.code_wire import encoded
from operant.envs.text.task import RIGHT, Verdict, failed

MEBIBYTE = 1 << 20
# The slowest solution of the datasets takes four seconds of a processor; on a busy machine that can be many more.
LIMITS = Limits(cpu_seconds=10, memory=512 * MEBIBYTE, processes=16, disk=16 * MEBIBYTE, file_size=8 * MEBIBYTE)
SECONDS = 15.0
OUT_OF_TIME = "the program did not come to an end in its time"


@dataclass(frozen=True)
class Checks:
    """How a program is tested: `names` are what it must define, `prelude` is what the tests need besides."""

    names: tuple[str, ...]
    tests: tuple[str, ...]
    prelude: str = ""


def bundle(*modules: str) -> str:
    """The text of sibling modules as one program: what they import from each other, or for hints alone, falls away."""
    texts = [Path(__file__).with_name(f"{module}.py").read_text() for module in modules]
    lines = [line for text in texts for line in text.splitlines() if not line.startswith(DROPPED)]
    return "\n".join(["from __future__ import annotations", *lines])


# Loading `typing` and `collections` would take longer than most verdicts.
DROPPED = ("from __future__", "from operant.", "from typing", "from collections.abc")
RUNNER = bundle("code_wire", "code_runner")
GRADER = bundle("code_wire", "code_grader")


# The simplest program that is right: where it is found right, verifying works.
HONEST = "def same(value):\n    return value\n"
HONEST_CHECKS = Checks(("same",), ("assert same(1) == 1",))


def verify_program(program: str, tests: Checks, seconds: float = SECONDS) -> Verdict:
    """Right if the program passes all tests in its time; one that takes longer is wrong.

    Nothing that the program does can leave it without a score: only where verifying fails for other programs too, or
    the tests themselves are at fault, is there none.
    """
    deadline = time.monotonic() + seconds
    try:
        verdict = retried(lambda: _verified(program, tests, deadline), _sandbox_verifies)
        # The program waited, or the machine had no time for it: then it has none for an honest one either.
        late = verdict.note == OUT_OF_TIME and not _sandbox_verifies(seconds / 3)
        return failed("no verdict in time, and none on an honest program either", "timeout") if late else verdict
    except SandboxKilled as killed:
        return Verdict(0.0, "wrong", note=killed.cause)
    except SandboxDied as died:
        return failed(died.cause)


def _verified(program: str, tests: Checks, deadline: float) -> Verdict:
    """One try; `SandboxDied` where the sandbox or the grader came to an end instead of a verdict."""
    with open_sandbox(limits=LIMITS) as sandbox:
        running = sandbox.start([sandbox.python, "-I", "-S", "-c", RUNNER])
        try:
            verdict = graded(running, program, tests, deadline - time.monotonic())
            return explained(verdict, running) if verdict.note == ENDED else verdict
        finally:
            running.close()


def _sandbox_verifies(seconds: float = SECONDS) -> bool:
    try:
        return _verified(HONEST, HONEST_CHECKS, time.monotonic() + seconds).score == 1.0
    except SandboxDied:
        return False


def runs_through(program: str, tests: Checks) -> bool:
    """Whether a program passes its tests when it is simply run with them: only for authors who are trusted."""
    source = "\n".join([tests.prelude, program, *tests.tests])
    with open_sandbox(limits=LIMITS) as sandbox:
        return sandbox.run([sandbox.python, "-I", "-c", source], seconds=SECONDS).code == 0


def graded(running: Running, program: str, tests: Checks, seconds: float) -> Verdict:
    """The grader's verdict, or that time was over before it had one."""
    job = encoded((program, list(tests.names), tests.prelude, list(tests.tests)), lambda _: 0)
    argv = [sys.executable, "-I", "-S", "-c", GRADER, str(running.stdin), str(running.stdout)]
    pipe, inherited = subprocess.PIPE, (running.stdin, running.stdout)
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, pass_fds=inherited) as grader:
        try:
            report, _ = grader.communicate(len(job).to_bytes(4, "big") + job, timeout=max(seconds, 0.1))
        except subprocess.TimeoutExpired:
            return Verdict(0.0, "wrong", note=OUT_OF_TIME)
        finally:
            with suppress(ProcessLookupError):
                grader.kill()
    return verdict_of(report.decode(errors="replace"), grader.returncode)


def explained(verdict: Verdict, running: Running) -> Verdict:
    """The verdict on a program that ended too early, with what the sandbox knows about it."""
    ended = running.wait(1.0)
    if ended and ended.code == -signal.SIGXCPU:
        return Verdict(0.0, "wrong", note=f"more than {LIMITS.cpu_seconds} s of processor time")
    return replace(verdict, note=f"{ENDED}: too much {ended.killed}") if ended and ended.killed else verdict


def verdict_of(report: str, code: int) -> Verdict:
    """The verdict in the grader's words."""
    outcome, _, note = report.partition(" ")
    if outcome == "right":
        return RIGHT
    if outcome == "wrong":
        return Verdict(0.0, "wrong", note="".join(sign if sign.isprintable() else " " for sign in note))
    if outcome == "error":
        return failed(note)
    raise SandboxDied(f"the grader ended with {code} and said nothing")
