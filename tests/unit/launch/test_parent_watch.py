from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CHILD = """
import pathlib, signal, sys, time
from operant.launch.parent_watch import stop_with_parent
def saved(number, frame):
    pathlib.Path(sys.argv[1]).write_text("saved")
    raise SystemExit(4)
signal.signal(signal.SIGTERM, saved)
stop_with_parent()
print("ready", flush=True)
time.sleep(30)
"""

PARENT = """
import os, subprocess, sys
from operant.launch.parent_watch import PARENT_VARIABLE
environment = {**os.environ, PARENT_VARIABLE: str(os.getpid())}
subprocess.run([sys.executable, "-c", sys.argv[1], sys.argv[2]], env=environment)
"""


STOP_WITH_PARENT = "from operant.launch.parent_watch import stop_with_parent; stop_with_parent()"


def test_a_job_whose_parent_was_killed_saves_and_ends(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = [sys.executable, "-c", PARENT, CHILD, str(mark)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        parent.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 10
        while not mark.exists():
            assert time.monotonic() < deadline, "the job runs on after its parent's death"
            time.sleep(0.05)


def test_a_job_started_by_hand_watches_nobody() -> None:
    code = f"import threading; {STOP_WITH_PARENT}; print(threading.active_count())"
    environment = {key: value for key, value in os.environ.items() if key != "OPERANT_PARENT"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "1\n"


def test_the_variable_is_not_passed_on_to_the_jobs_own_children() -> None:
    code = f"import os; {STOP_WITH_PARENT}; print('OPERANT_PARENT' in os.environ)"
    environment = {**os.environ, "OPERANT_PARENT": str(os.getpid())}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_a_signal_before_the_session_begins_is_a_plain_stop() -> None:
    code = (
        "from operant.launch.parent_watch import exit_when_signalled; import time; exit_when_signalled();"
        "print('ready', flush=True); time.sleep(30)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 4
        assert process.stderr.read() == b""
