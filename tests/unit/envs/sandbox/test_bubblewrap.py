"""The sandbox by bubblewrap, for real: what goes in and out, every limit, and that nothing is left."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from operant.envs.sandbox import Limits, Ran, Sandbox, SandboxDied, bubblewrap, open_sandbox
from operant.errors import OperantError
from tests.processes import marked, wait_until

pytestmark = pytest.mark.skipif(bool(bubblewrap.trouble()), reason=f"no sandbox: {bubblewrap.trouble()}")

MEBIBYTE = 1 << 20


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    limits = Limits(
        memory=128 * MEBIBYTE, processes=8, disk=4 * MEBIBYTE, file_size=2 * MEBIBYTE, files=500, output=1000
    )
    with open_sandbox("bubblewrap", limits) as opened:
        yield opened


def python(sandbox: Sandbox, source: str) -> Ran:
    return sandbox.run([sandbox.python, "-c", source], seconds=10)


def test_a_program_gets_its_input_and_its_output_comes_back(sandbox: Sandbox) -> None:
    ran = sandbox.run(
        ["sh", "-c", "cat; echo $WORD; echo no >&2; exit 3"], stdin=b"in\n", seconds=5, environment={"WORD": "w"}
    )
    assert (ran.code, ran.out, ran.err, ran.killed, ran.cut) == (3, b"in\nw\n", b"no\n", "", False)


def test_a_large_input_meets_a_program_that_does_not_read_it(sandbox: Sandbox) -> None:
    assert sandbox.run(["true"], stdin=b"x" * MEBIBYTE, seconds=5).code == 0


def test_files_go_in_and_out_and_stay_between_runs() -> None:
    with open_sandbox("bubblewrap", files={"deep/in/a.txt": b"one"}) as sandbox:
        assert sandbox.run(["cat", "deep/in/a.txt"], seconds=5).out == b"one"
        sandbox.write("b.bin", bytes(range(256)) * 1000)
        assert sandbox.read("b.bin") == bytes(range(256)) * 1000
        with pytest.raises(OperantError, match="No such file"):
            sandbox.read("none")


def test_a_snapshot_brings_everything_back_here_and_elsewhere(sandbox: Sandbox) -> None:
    sandbox.write("a/kept", b"kept")
    snapshot = sandbox.snapshot()
    python(sandbox, "import os; os.remove('a/kept'); open('new', 'w').close()")
    sandbox.restore(snapshot)
    assert sandbox.run(["find", ".", "-type", "f"], seconds=5).out == b"./a/kept\n"
    with open_sandbox("bubblewrap") as other:
        other.restore(snapshot)
        assert other.read("a/kept") == b"kept"


def test_two_sandboxes_share_nothing(sandbox: Sandbox) -> None:
    sandbox.run(["sh", "-c", "echo x > /tmp/x; echo x > x"], seconds=5)
    with open_sandbox("bubblewrap") as other:
        assert other.run(["sh", "-c", "ls /tmp /work"], seconds=5).out == b"/tmp:\n\n/work:\n"


def test_a_long_lived_program_talks_through_its_pipes(sandbox: Sandbox) -> None:
    running = sandbox.start(["cat"])
    for word in (b"one", b"two"):
        os.write(running.stdin, word)
        assert os.read(running.stdout, 100) == word
    assert running.wait(0) is None
    assert sandbox.run(["true"], seconds=5).code == 0
    os.write(running.stdin, b"still here after another run")
    assert os.read(running.stdout, 100) == b"still here after another run"
    running.close_stdin()
    ended = running.wait(5)
    assert ended
    assert ended.code == 0
    running.close()


def test_a_long_lived_program_can_be_killed(sandbox: Sandbox) -> None:
    running = sandbox.start(["sleep", "60"])
    running.kill()
    ended = running.wait(5)
    assert ended
    assert ended.code == -9
    running.close()


def test_a_program_that_does_not_exist_says_so(sandbox: Sandbox) -> None:
    ran = sandbox.run(["no-such-program"], seconds=5)
    assert ran.code == 127
    assert b"no-such-program" in ran.err


def test_time(sandbox: Sandbox) -> None:
    ran = sandbox.run(["sh", "-c", "echo before; sleep 60"], seconds=0.3)
    assert (ran.timed_out, ran.out) == (True, b"before\n")
    assert ran.seconds < 3
    assert sandbox.run(["echo", "after"], seconds=5).out == b"after\n"


def test_processor_time() -> None:
    with open_sandbox("bubblewrap", Limits(cpu_seconds=1)) as sandbox:
        assert python(sandbox, "while True: pass").code == -24


def test_memory_of_one_process(sandbox: Sandbox) -> None:
    assert b"MemoryError" in python(sandbox, "bytearray(200 << 20)").err


def test_memory_of_all_processes_together(sandbox: Sandbox) -> None:
    child = "if not os.fork():\n        x = bytearray(60 << 20)\n        time.sleep(60)"
    many = f"import os, time\nfor _ in range(5):\n    {child}\ntime.sleep(60)"
    assert python(sandbox, many).killed == "memory"


def test_processes(sandbox: Sandbox) -> None:
    fork = "try:\n        if not os.fork(): time.sleep(60)\n    except OSError: break"
    bomb = f"import os, time\nn = 0\nwhile True:\n    {fork}\n    n += 1\nprint(n)"
    assert python(sandbox, bomb).out == b"7\n"
    assert python(sandbox, "print(1)").out == b"1\n", "what the bomb left behind is gone"


def test_size_of_a_file_and_of_the_disk(sandbox: Sandbox) -> None:
    assert b"File too large" in python(sandbox, "open('big', 'wb').write(bytes(3 << 20))").err
    for place in ("/work", "/tmp"):
        fill = f"for i in range(9): open(f'{place}/{{i}}', 'wb').write(bytes(1 << 20))"
        assert b"No space left" in python(sandbox, fill).err


def test_number_of_files(sandbox: Sandbox) -> None:
    assert (
        python(sandbox, "import time\nfor i in range(600): open(f'/tmp/{i}', 'w').close()\ntime.sleep(9)").killed
        == "files"
    )


def test_open_files() -> None:
    with open_sandbox("bubblewrap", Limits(open_files=20)) as sandbox:
        assert b"Too many open files" in python(sandbox, "x = [open('/dev/null') for _ in range(30)]").err


def test_output(sandbox: Sandbox) -> None:
    ran = python(sandbox, "print('x' * 5000)")
    assert (ran.out, ran.cut, ran.code) == (b"x" * 1000, True, 0)


def test_no_network(sandbox: Sandbox) -> None:
    assert python(sandbox, "import socket; print([n for _, n in socket.if_nameindex()])").out == b"['lo']\n"
    assert (
        b"Network is unreachable" in python(sandbox, "import socket; socket.create_connection(('8.8.8.8', 53), 2)").err
    )


def test_nothing_of_the_machine_can_be_written_and_little_read(sandbox: Sandbox) -> None:
    for place in ("/", "/usr", "/dev", "/dev/shm", "/proc"):
        assert sandbox.run(["touch", f"{place}/planted"], seconds=5).code != 0
    assert sandbox.run(["ls", "-A", "/etc"], seconds=5).out in (b"", b"alternatives\n")
    assert sandbox.run(["ls", "/root", "/home", "/var"], seconds=5).out == b""


@pytest.mark.skipif(shutil.which("awk") is None, reason="this machine has no awk")
def test_programs_that_the_system_names_by_links_are_there(sandbox: Sandbox) -> None:
    assert sandbox.run(["awk", "BEGIN {print 1 + 2}"], seconds=5).out == b"3\n"


def test_what_a_run_leaves_behind_is_killed(sandbox: Sandbox) -> None:
    sandbox.run(["sh", "-c", "setsid sleep 60 & setsid sleep 60 & exit 0"], seconds=5)
    assert sandbox.run(["pgrep", "sleep"], seconds=5).out == b""


@pytest.mark.parametrize("call", ["ptrace(16, 1, 0, 0)", "unshare(0x10000000)", "keyctl(0, 0)", "syscall(425, 1, 0)"])
def test_the_filter_refuses_system_calls(sandbox: Sandbox, call: str) -> None:
    if call.startswith("keyctl"):
        call = "syscall(250 if __import__('platform').machine() == 'x86_64' else 219, 0, 0)"
    asked = f"import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.{call}, ctypes.get_errno())"
    assert python(sandbox, asked).out == b"-1 1\n"


def test_a_folder_can_be_shown_read_only() -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        Path(folder, "data.txt").write_text("shown")
        with open_sandbox("bubblewrap", readable=[folder]) as sandbox:
            assert sandbox.read(f"{folder}/data.txt") == b"shown"
            assert sandbox.run(["touch", f"{folder}/data.txt"], seconds=5).code != 0


def test_a_killed_sandbox_says_that_it_is_gone(sandbox: Sandbox) -> None:
    assert sandbox.alive
    sandbox.kill()
    assert not sandbox.alive
    with pytest.raises(SandboxDied):
        sandbox.run(["true"], seconds=5)


@pytest.mark.slow
def test_it_opens_in_less_than_a_tenth_of_a_second() -> None:
    def opening() -> float:
        began = time.perf_counter()
        with open_sandbox("bubblewrap"):
            return time.perf_counter() - began

    assert min(opening() for _ in range(10)) < 0.1


def test_closing_leaves_no_process() -> None:
    mark = f"60{time.time_ns()}"
    with open_sandbox("bubblewrap") as sandbox:
        sandbox.start(["sh", "-c", f"setsid sleep {mark} & sleep {mark}"]).close()
        assert wait_until(lambda: bool(marked(mark)))
    assert wait_until(lambda: not marked(mark))


def test_sandboxes_that_are_killed_at_random_are_all_accounted_for() -> None:
    """Each either answers for itself alone or says that it died, and none leaves a process."""
    mark = f"60{time.time_ns()}"

    def rollout(number: int) -> str:
        try:
            with open_sandbox("bubblewrap", files={"number": str(number).encode()}) as sandbox:
                ran = sandbox.run(["sh", "-c", f"setsid sleep {mark} & sleep 0.05; ls; cat number"], seconds=20)
                return "ok" if ran.out == b"number\n%d" % number else f"wrong: {ran}"
        except SandboxDied:
            return "died"

    with ThreadPoolExecutor(4) as pool:
        rollouts = [pool.submit(rollout, number) for number in range(20)]
        while not all(one.done() for one in rollouts):
            time.sleep(0.05)
            for pid in own_sandboxes()[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
    outcomes = [one.result() for one in rollouts]
    assert set(outcomes) <= {"ok", "died"}
    assert "died" in outcomes
    assert own_sandboxes() == []
    assert wait_until(lambda: not marked(mark))


def own_sandboxes() -> list[int]:
    """The living sandboxes that this process has opened."""
    own = []
    for pid in marked("bwrap"):
        with suppress(OSError):
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            own += [pid] if int(parent) == os.getpid() else []
    return own


def test_the_network_is_there_only_where_that_is_asked_for() -> None:
    source = "import socket; socket.create_connection(('127.0.0.1', PORT), 5).sendall(b'x'); print('sent')"
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = source.replace("PORT", str(server.getsockname()[1]))
        with open_sandbox("bubblewrap") as shut, open_sandbox("bubblewrap", Limits(network=True)) as open_to_all:
            assert b"sent" not in python(shut, source).out
            assert python(open_to_all, source).out == b"sent\n"


def test_with_accelerators_a_process_may_map_more_than_it_holds() -> None:
    limits = Limits(memory=256 * MEBIBYTE, gpu=True)
    with open_sandbox("bubblewrap", limits) as sandbox:
        assert python(sandbox, "import mmap; mmap.mmap(-1, 4 << 30); print('mapped')").out == b"mapped\n"
        assert python(sandbox, "import time; held = b'x' * (1 << 30); time.sleep(5)").killed == "memory"


def test_python_is_the_interpreter_of_the_sandbox_by_any_name(sandbox: Sandbox) -> None:
    asked = "import sys; print(sys.version_info[:2], sys.prefix)"
    said = {sandbox.run([name, "-c", asked], seconds=5).out for name in ("python", "python3", sandbox.python)}
    assert len(said) == 1
    assert said != {b""}


def test_only_plain_files_are_fetched(sandbox: Sandbox) -> None:
    sandbox.write("out/plain", b"12345")
    assert sandbox.fetch("out/plain", 5) == b"12345"
    traps = "ln -s out/plain link; ln -s out folder; ln -s /dev/zero zero; mkfifo pipe; ln -s nowhere dangling"
    assert sandbox.run(["sh", "-ec", f"{traps}; mkdir d"], seconds=5).code == 0
    for trap in (
        "link",
        "folder/plain",
        "zero",
        "pipe",
        "dangling",
        "d",
        f"..{bubblewrap.WORK}/out/plain",
        "/etc/passwd",
    ):
        with pytest.raises(OperantError, match=r"no plain file|no such file"):
            sandbox.fetch(trap, 100)
    with pytest.raises(OperantError, match="no such file"):
        sandbox.fetch("none", 100)
    with pytest.raises(OperantError, match="larger than 4"):
        sandbox.fetch("out/plain", 4)


def test_the_end_of_a_long_output_is_kept(sandbox: Sandbox) -> None:
    ran = python(sandbox, "print('x' * 100_000, 'the end')")
    assert (len(ran.out), ran.dropped, ran.tail[-9:]) == (1000, 99_009, b" the end\n")


def test_a_snapshot_holds_files_that_were_locked(sandbox: Sandbox) -> None:
    sandbox.write("a/b", b"in")
    sandbox.run(["chmod", "-R", "0", "a"], seconds=5)
    with open_sandbox("bubblewrap") as other:
        other.restore(sandbox.snapshot())
        assert other.read("a/b") == b"in"


def test_a_wrapper_that_is_killed_while_it_begins_leaves_no_child_and_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bubblewrap's child was seen to wait for ever for its dead parent, and its host for the child."""
    mark = f"60.{time.time_ns()}"
    stuck = f"import os, time\nif os.fork(): os._exit(1)\ntime.sleep({mark})"
    monkeypatch.setattr(bubblewrap, "command", lambda *_: [sys.executable, "-c", stuck])
    began = time.monotonic()
    with pytest.raises(SandboxDied, match="did not open"):
        bubblewrap.Bubblewrap(Limits())
    assert time.monotonic() - began < 5
    assert wait_until(lambda: not marked(mark))


def test_operant_and_the_datasets_cannot_be_seen_in_a_place_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Operant is installed below /usr, which every sandbox shows."""
    with TemporaryDirectory() as shown:
        for name in ("operant/graders", "datasets/titanic", "other"):
            (Path(shown) / name).mkdir(parents=True)
            (Path(shown) / name / "file").write_text("labels")
        os.chmod(shown, 0o755)
        monkeypatch.setattr(bubblewrap, "PACKAGE", f"{shown}/operant")
        monkeypatch.setenv("OPERANT_DATA", f"{shown}/datasets")
        with open_sandbox("bubblewrap", readable=[shown]) as opened:
            ran = opened.run(["sh", "-c", f"find {shown} -type f; touch {shown}/operant/mine"], seconds=5)
    assert ran.out.decode().split() == [f"{shown}/other/file"]
    assert b"Read-only" in ran.err


def test_a_dataset_that_is_shown_itself_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERANT_DATA", "/srv/data")
    assert bubblewrap.concealed(["/usr", "/srv/data"]) == []
