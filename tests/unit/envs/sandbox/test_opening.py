"""Which sandbox is opened, what is said where there is none, and the two kinds besides bubblewrap."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from operant.envs.sandbox import Limits, bubblewrap, docker, open_sandbox, opening, process, require_sandbox
from operant.envs.sandbox.seccomp import filter_program
from operant.errors import UsageError
from tests.processes import lives, marked, wait_until


@pytest.fixture
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "trouble", lambda: "bubblewrap (the program bwrap) is not installed")
    monkeypatch.setattr(docker, "engine", lambda wanted=None: None)


@pytest.mark.usefixtures("_nothing_installed")
def test_without_a_sandbox_a_person_is_told_what_to_install() -> None:
    for refuse in (require_sandbox, open_sandbox, lambda: open_sandbox("bubblewrap")):
        with pytest.raises(UsageError, match="not installed") as error:
            refuse()
        assert error.value.remedy == "apt install bubblewrap"
    with pytest.raises(UsageError, match="no container engine answers"):
        open_sandbox("docker")


@pytest.mark.usefixtures("_nothing_installed")
def test_an_unsafe_process_is_taken_only_where_that_is_allowed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_warned", False)
    for _ in range(2):
        with open_sandbox(allow_unsafe=True) as sandbox:
            assert isinstance(sandbox, process.LimitedProcess)
    assert capsys.readouterr().err.count("UNSAFE") == 1


def test_a_container_is_taken_where_bubblewrap_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "trouble", lambda: "no namespaces")
    monkeypatch.setattr(docker, "engine", lambda wanted=None: wanted or "docker")
    assert opening.chosen("auto", allow_unsafe=True) == "docker"
    assert opening.chosen("podman", allow_unsafe=True) == "podman"
    monkeypatch.setattr(docker, "engine", lambda wanted=None: "podman")
    assert opening.chosen("docker", allow_unsafe=True) == "podman"


@pytest.mark.parametrize(("engine", "option"), [("docker", "--gpus=all"), ("podman", "--device=nvidia.com/gpu=all")])
def test_a_container_gets_accelerators_and_a_network_where_that_is_asked_for(engine: str, option: str) -> None:
    line = docker.container_command(engine, "name", Limits(gpu=True, network=True), "image")
    assert option in line
    assert "--network=none" not in line
    assert option not in docker.container_command(engine, "name", Limits(), "image")
    assert "--volume=/a:/a:ro" in docker.container_command(engine, "name", Limits(), "image", ["/a"])


def test_bubblewrap_shows_accelerators_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.glob, "glob", lambda pattern: ["/dev/nvidiactl", "/dev/nvidia0"])
    line = " ".join(bubblewrap.command(Limits(gpu=True), (), 3))
    assert "--dev-bind /dev/nvidia0 /dev/nvidia0 --dev-bind /dev/nvidiactl /dev/nvidiactl" in line
    assert line.index("nvidia0") < line.index("--remount-ro"), "the places are filled before they are shut"
    assert "nvidia" not in " ".join(bubblewrap.command(Limits(), (), 3))


def test_a_container_is_shut_like_the_other_kinds() -> None:
    line = docker.container_command("docker", "name", Limits(processes=7, disk=99), "image")
    assert line[-3:] == ["image", "sleep", "infinity"]
    wanted = {"--network=none", "--read-only", "--cap-drop=ALL", "--user=65534:65534", "--pids-limit=7", "--init"}
    assert wanted <= set(line)
    assert [part for part in line if part.startswith("--tmpfs=") and "size=99," in part and part.count(":") == 1]


def test_a_limited_process_has_limits_and_leaves_nothing() -> None:
    limits = Limits(memory=128 << 20, processes=8)
    with open_sandbox("process", limits, {"a/b": b"in"}) as sandbox:
        assert sandbox.read("a/b") == b"in"
        folder = sandbox.run(["pwd"], seconds=5).out.decode().strip()
        assert b"MemoryError" in sandbox.run([sandbox.python, "-c", "bytearray(200 << 20)"], seconds=5).err
        assert sandbox.run(["sleep", "60"], seconds=0.2).timed_out
        bomb = "import os, time\nfor _ in range(12):\n    if not os.fork(): time.sleep(60)\ntime.sleep(60)"
        ran = sandbox.run([sandbox.python, "-c", bomb], seconds=10)
        assert ran.killed == "processes" or b"temporarily unavailable" in ran.err, "by the watch or by the kernel"
        left = sandbox.run(["sh", "-c", "setsid sleep 60 & echo $!"], seconds=5).out
        stays = sandbox.start(["sleep", "60"])
        assert wait_until(lambda: not lives(int(left)))
        stays.close()
    assert not os.path.exists(folder)


def test_the_filter_is_a_list_of_instructions_that_ends_in_a_verdict() -> None:
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        assert len(program) % 8 == 0
        assert program[-16:-8] == bytes.fromhex("06 00 00 00 00 00 ff 7f")
        assert program[-8:] == bytes.fromhex("06 00 00 00 01 00 05 00")
    assert filter_program("riscv64") == b""


@pytest.mark.parametrize("kind", ["bubblewrap", "process"])
def test_a_sandbox_ends_with_the_process_that_opened_it(kind: str) -> None:
    """A worker that is killed cannot close what it opened."""
    if kind == "bubblewrap" and bubblewrap.trouble():
        pytest.skip(f"no sandbox: {bubblewrap.trouble()}")
    mark = f"60{time.time_ns()}"
    source = f"""
import time
from operant.envs.sandbox import open_sandbox
sandbox = open_sandbox({kind!r})
print(sandbox.run(["pwd"], seconds=5).out.decode().strip(), flush=True)
running = sandbox.start(["sleep", "{mark}"])
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as opener:
        assert opener.stdout
        folder = opener.stdout.readline().decode().strip()
        assert wait_until(lambda: len(marked(mark)) > 1), "the opener and its program"
        opener.kill()
    assert wait_until(lambda: not marked(mark))
    assert wait_until(lambda: kind == "bubblewrap" or not os.path.exists(folder))
