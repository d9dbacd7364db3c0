"""Compile the kernels where they run: once for each version of source, compiler and JAX, into the user's cache."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from operant.envs.hackmatrix import constants
from operant.store.cache import cache_folder

SOURCE = Path(__file__).with_name("source")
# No product is fused with a sum: rewards and observations are then the same bits in every form.
HOST_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-ffp-contract=off")
GPU_FLAGS = ("-std=c++17", "-O3", "--shared", "--fmad=false", "-x", "cu", "-Xcompiler", "-fPIC,-ffp-contract=off")
LIMIT = 600  # seconds


class NoKernelError(Exception):
    """There is no compiler here, or it fails; the message is one line."""


def library(capability: str | None = None) -> Path:
    """The compiled kernels for processors, and for a GPU of a compute capability such as `9.0` where one is given."""
    import jax

    command = _command(capability)
    version = _run([command[0], "--version"])
    parts = [constants_header(), *(path.read_text() for path in sorted(SOURCE.iterdir()))]
    key = sha256("\0".join([*parts, *command, version, platform.machine(), jax.__version__]).encode()).hexdigest()[:24]
    built = cache_folder("kernels") / f"hackmatrix-{key}.so"
    if not built.exists():
        _compile(command, Path(jax.ffi.include_dir()), built)
    return built


def _command(capability: str | None) -> list[str]:
    if capability is None:
        return [_found("a C++ compiler", os.environ.get("CXX"), "g++", "clang++", "c++"), *HOST_FLAGS]
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    nvcc = _found("nvcc", "nvcc", f"{home}/bin/nvcc", *_nvcc_of_packages())
    return [nvcc, *GPU_FLAGS, f"-arch=sm_{capability.replace('.', '')}"]


def _found(what: str, *names: str | None) -> str:
    places = (shutil.which(name) for name in names if name)
    found = next((place for place in places if place), None)
    if found is None:
        raise NoKernelError(f"{what} is not found")
    return found


def _nvcc_of_packages() -> list[str]:
    """Where NVIDIA's Python packages put the compiler."""
    spec = find_spec("nvidia")
    folders = spec.submodule_search_locations if spec is not None else None
    return [str(path) for folder in folders or () for path in Path(folder).glob("*/bin/nvcc")]


def _compile(command: list[str], include: Path, built: Path) -> None:
    """Compile beside the place and move there, so that nobody ever sees half a library."""
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        (Path(folder) / "constants.h").write_text(constants_header())
        made = Path(folder) / built.name
        _run([*command, f"-I{SOURCE}", f"-I{folder}", f"-I{include}", str(SOURCE / "kernels.cc"), "-o", str(made)])
        made.replace(built)


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise NoKernelError(f"{command[0]} did not run: {failed}") from failed
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise NoKernelError(f"{command[0]} fails: {said}")
    return done.stdout


def constants_header() -> str:
    """The tables of the rules in C++: numbers under their own names, and the columns of tables."""
    kinds = {int: "int", float: "double"}
    numbers = {name: value for name, value in vars(constants).items() if name.isupper() and type(value) in kinds}
    amounts, hp = constants.AMOUNTS, [kind.max_hp for kind in constants.ENEMIES]
    numbers |= {"AMOUNT_ODDS": len(amounts), "FIRST_TWO": amounts.index(2), "FIRST_THREE": amounts.index(3)}
    numbers |= {"ENEMY_KINDS": len(hp), "DAEMON_HP": hp[constants.DAEMON], "OTHER_HP": min(hp)}
    lines = ["#pragma once", *(f"constexpr {kinds[type(value)]} {name} = {value};" for name, value in numbers.items())]
    for column in ("credits", "energy", "spawn"):
        entries = ", ".join(str(getattr(program, column)) for program in constants.PROGRAMS)
        lines.append(f"#define PROGRAM_{column.upper()} {entries}")
    return "\n".join(lines) + "\n"
