"""Programs that turn on their sandbox: each ends in a result, and the next program in it is unaffected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from operant.envs.sandbox import Limits, Sandbox, bubblewrap, cgroup, open_sandbox

pytestmark = pytest.mark.skipif(bool(bubblewrap.trouble()), reason=f"no sandbox: {bubblewrap.trouble()}")

WAIT = "import time; time.sleep(0.3)"  # a few turns of the watch
HOSTILE = {
    "shuts the work area": f"import os; os.chmod('.', 0); {WAIT}",
    "interrupts the first process": f"import os; os.kill(1, 2); {WAIT}",
    "takes files from the first process": f"import resource; resource.prlimit(1, 7, (0, 0)); {WAIT}",
    "takes time from the first process": "import resource, time; resource.prlimit(1, 0, (0, 0)); time.sleep(2)",
    "kills all it sees": "import os; os.kill(-1, 9)",
    "stops all it sees": f"import os; os.kill(1, 19); os.kill(-1, 19); {WAIT}",
    "sends every signal": f"import os\nfor s in range(1, 65):\n  if s not in (32, 33): os.kill(1, s)\n{WAIT}",
    "closes its files": "import os; os.closerange(0, 256)",
    "fills the disk": "open('full', 'wb').write(bytes(8 << 20))",
    "prints without end": "import sys\nfor _ in range(100): sys.stdout.write('x' * 100_000)",
    "leaves a daemon": "import os, time\nif not os.fork():\n  os.setsid(); time.sleep(60)",
    "bombs": "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    "wants to be spared": "open('/proc/self/oom_score_adj', 'w').write('-1000')",
    "moves the work area": f"import os; os.rename('/work', '/tmp/w'); {WAIT}",
    "makes a deep folder": "import os\nfor _ in range(300): os.mkdir('d'); os.chdir('d')",
    "names files strangely": "import os; open(b'\\xff\\n', 'w'); open('\\udc80', 'w')",
}


@pytest.fixture(params=["counted by the kernel", "counted by the watch"])
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    if request.param == "counted by the watch":
        monkeypatch.setattr(cgroup, "parents", lambda: ())
    elif not cgroup.parents():
        pytest.skip("no control groups can be made here")
    with open_sandbox("bubblewrap", Limits(cpu_seconds=3, memory=96 << 20, processes=8, disk=4 << 20)) as opened:
        yield opened


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_a_program_does_ends_its_sandbox(sandbox: Sandbox, name: str) -> None:
    sandbox.run([sandbox.python, "-c", HOSTILE[name]], seconds=3)
    assert sandbox.alive
    assert sandbox.run(["echo", "next"], seconds=20).out == b"next\n"


MEMORY = {
    "semaphores": "c.semget(0, 32000, 0o1600)",
    "queues": "c.msgget(0, 0o1600)",
    "segments": "c.shmget(0, 4096, 0o1600)",
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_that_belongs_to_no_process_is_refused(sandbox: Sandbox, name: str) -> None:
    asked = f"import ctypes; c = ctypes.CDLL(None, use_errno=True); print({MEMORY[name]}, ctypes.get_errno())"
    assert sandbox.run([sandbox.python, "-c", asked], seconds=10).out == b"-1 1\n"


SOCKETS = """
import socket, time
held = []
while True:
    try: pair = socket.socketpair()
    except OSError: time.sleep(60)  # no more files: what it holds, it holds until it is counted
    for end in pair:
        end.setblocking(False)
        try:
            while True: end.send(bytes(65536))
        except BlockingIOError: pass
    held.append(pair)
"""
SHARED = """
import mmap, os, time
for _ in range(4):
    if not os.fork():
        held = mmap.mmap(-1, 60 << 20)
        for at in range(0, 60 << 20, 1 << 20):
            held[at : at + (1 << 20)] = bytes(1 << 20)
            held.madvise(mmap.MADV_DONTNEED, at, 1 << 20)
        time.sleep(60)
        os._exit(0)
os.wait()
"""


def test_socket_buffers_count_as_memory(sandbox: Sandbox) -> None:
    """256 open files hold more than 24 MB of buffers."""
    small = Limits(memory=24 << 20, maps_freely=True)
    with open_sandbox("bubblewrap", small) as tight:
        assert tight.run([tight.python, "-c", SOCKETS], seconds=20).killed == "memory"


def test_shared_pages_that_nobody_maps_count_as_memory_or_are_refused(sandbox: Sandbox) -> None:
    ran = sandbox.run([sandbox.python, "-c", SHARED], seconds=20)
    assert ran.killed == "memory" or b"PermissionError" in ran.err
