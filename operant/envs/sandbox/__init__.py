"""Where code that nobody has read is run: fresh, limited, without a network, and gone afterwards.

    with open_sandbox(limits=Limits(memory=256 << 20), files={"main.py": source}) as sandbox:
        ran = sandbox.run([sandbox.python, "main.py"], seconds=5)

What comes out of a sandbox is data of unknown truth: an exit code or a printed "passed" is the word of the
program that was run. Whoever scores must compare values outside.
"""

from __future__ import annotations

from operant.envs.sandbox.base import Sandbox, SandboxDied
from operant.envs.sandbox.fault import SandboxKilled, retried, sandbox_works
from operant.envs.sandbox.limits import Limits, Ran
from operant.envs.sandbox.opening import Kind, open_sandbox, require_sandbox
from operant.envs.sandbox.running import Running

__all__ = [
    "Kind",
    "Limits",
    "Ran",
    "Running",
    "Sandbox",
    "SandboxDied",
    "SandboxKilled",
    "open_sandbox",
    "require_sandbox",
    "retried",
    "sandbox_works",
]
