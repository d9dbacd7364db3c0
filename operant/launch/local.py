"""Jobs as processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess

from operant.envs.cores import CORES_VARIABLE
from operant.launch.budget import library_environment
from operant.launch.launcher import Resources, Ticket
from operant.launch.parent_watch import PARENT_VARIABLE


class LocalLauncher:
    """Each job is a process in its own process session.

    A terminal's Ctrl-C therefore reaches the parent alone, who decides what to forward.
    """

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._asked: set[int] = set()

    def submit(self, argv: list[str], resources: Resources, name: str) -> Ticket:
        """Start `argv` with its threads limited; the log is appended to, never overwritten."""
        resources.log.parent.mkdir(parents=True, exist_ok=True)
        with resources.log.open("ab") as log:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(resources),
                start_new_session=True,
            )
        self._processes[process.pid] = process
        return Ticket(name=name, ident=process.pid, log=resources.log)

    def poll(self, ticket: Ticket) -> int | None:
        """The exit code; negative for the signal that killed it; None while it runs."""
        return self._processes[ticket.ident].poll()

    def cancel(self, ticket: Ticket) -> None:
        """First SIGINT to the job alone, so that it saves; then SIGKILL to all of its processes."""
        if self.poll(ticket) is not None:
            return
        if ticket.ident not in self._asked:
            self._asked.add(ticket.ident)
            self._processes[ticket.ident].send_signal(signal.SIGINT)
        else:
            os.killpg(ticket.ident, signal.SIGKILL)


def _environment(resources: Resources) -> dict[str, str]:
    """The parent's environment, with the job's threads and the process it must not outlive."""
    return {
        **os.environ,
        **library_environment(resources.threads),
        CORES_VARIABLE: str(resources.cores),
        PARENT_VARIABLE: str(os.getpid()),
        **resources.environment,
        "PYTHONUNBUFFERED": "1",
    }
