"""scripts/uv: which settings reach uv, on machines with and without a GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "uv"
TOOLS = ("chmod", "dirname", "mkdir", "sed", "sh", "tr")
SETTINGS = ("UV_FIND_LINKS", "UV_PYTHON", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


class Machine:
    """A clone that holds only the script, and a path with a uv that prints what it was given."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "scripts" / "uv")
        self.programs = folder / "programs"
        self.programs.mkdir()
        for tool in TOOLS:
            (self.programs / tool).symlink_to(shutil.which(tool) or tool)
        self.program(
            "uv", f'for name in {" ".join(SETTINGS)}; do eval "echo $name=\\${{$name-unset}}"; done; echo "$@"'
        )

    def program(self, name: str, body: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        base = {"PATH": str(self.programs), "PYTHON": sys.executable, "PIP_CONFIG_FILE": "/dev/null"}
        command = ["sh", str(self.root / "scripts" / "uv"), "run", "operant"]
        return subprocess.run(command, env=base | environment, capture_output=True, text=True)

    def settings(self, **environment: str) -> dict[str, str]:
        lines = self.run(**environment).stdout.splitlines()
        assert lines[-1] == "run operant"
        return dict(line.split("=", 1) for line in lines[:-1])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_pips_extra_wheels_are_carried_over(machine: Machine) -> None:
    assert machine.settings(PIP_FIND_LINKS="/a /b")["UV_FIND_LINKS"] == "/a,/b"


def test_a_machine_with_a_gpu_takes_the_registrys_torch(machine: Machine) -> None:
    machine.program("nvidia-smi", "exit 0")
    assert machine.settings(PIP_FIND_LINKS="/a")["UV_FIND_LINKS"] == "unset"


def test_a_driver_without_a_gpu_does_not_count(machine: Machine) -> None:
    machine.program("nvidia-smi", "exit 9")
    assert machine.settings(PIP_FIND_LINKS="/a")["UV_FIND_LINKS"] == "/a"


def test_what_the_user_set_stays(machine: Machine) -> None:
    settings = machine.settings(PIP_FIND_LINKS="/a", UV_FIND_LINKS="", UV_PYTHON="3.12")
    assert (settings["UV_FIND_LINKS"], settings["UV_PYTHON"]) == ("", "3.12")


def test_the_first_install_uses_this_python_and_later_ones_the_environment(machine: Machine) -> None:
    assert machine.settings()["UV_PYTHON"] == sys.executable
    (machine.root / ".venv").mkdir()
    assert machine.settings()["UV_PYTHON"] == "unset"


def test_compiled_code_is_kept_out_of_the_tree_where_it_may_not_lie_in_it(machine: Machine) -> None:
    assert machine.settings()["PYTHONPYCACHEPREFIX"] == "unset"
    settings = machine.settings(PYTHONDONTWRITEBYTECODE="1")
    assert settings["PYTHONDONTWRITEBYTECODE"] == "unset"
    assert settings["PYTHONPYCACHEPREFIX"] == str(machine.root / ".pycache")


def test_an_old_python_is_refused_with_a_way_out(machine: Machine) -> None:
    machine.program("python3.9", "exit 1")
    result = machine.run(PYTHON="python3.9")
    assert result.returncode == 2
    assert "'python3.9' is not a Python 3.11 or newer; name one, for example: PYTHON=python3.12" in result.stderr


def test_a_missing_uv_is_installed_by_pip(machine: Machine) -> None:
    (machine.programs / "uv").unlink()
    home = machine.root.parent / "home" / "bin"
    fake = f"""case "$*" in
    *pip*) mkdir -p {home}; printf '#!/bin/sh\\necho "$@"\\n' > {home}/uv; chmod +x {home}/uv ;;
    *user*) echo {home} ;;
    *sysconfig*) echo /nowhere ;;
    esac"""
    machine.program("python3", fake)
    result = machine.run(PYTHON="python3", UV_FIND_LINKS="")
    assert result.stderr == "scripts/uv: installing uv\n"
    assert result.stdout == "run operant\n"
