"""How to install what is missing: the one place that words it, for every error, for `operant doctor` and for tests.

The command suits the way Operant itself is installed, and never removes a package: `uv sync` would, without --inexact.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from operant.errors import UsageError

# Which extra of Operant brings a module; those that no extra brings are installed by their own name.
EXTRA_OF = {
    **dict.fromkeys(("torch", "ale_py", "Box2D", "mujoco"), "deep"),
    **dict.fromkeys(("jax", "jaxlib"), "jax"),
    **dict.fromkeys(
        (
            "accelerate",
            "gguf",
            "huggingface_hub",
            "math_verify",
            "peft",
            "starlette",
            "tokenizers",
            "transformers",
            "uvicorn",
        ),
        "language",
    ),
    "mujoco.mjx": "mjx",
    "mujoco_playground": "playground",
    "reasoning_gym": "reasoning",
    "ray": "cluster",
    "lm_eval": "harness",
    "verifiers": "verifiers",
    **dict.fromkeys(("onnx", "onnxruntime"), "export"),
    **dict.fromkeys(("alembic", "cmaes", "optuna", "psycopg2", "sqlalchemy"), "search"),
    **{name: name for name in ("tensorboard", "wandb", "mlflow", "trackio")},
    **dict.fromkeys(("boto3", "botocore"), "cloud"),
}
# Modules that come with Operant itself.
CORE = (
    *("gymnasium", "imageio", "imageio_ffmpeg", "matplotlib", "numpy", "packaging", "PIL", "pydantic", "pygame"),
    *("rich", "ruamel", "safetensors", "typer"),
)
CLONE = Path(__file__).resolve().parents[1]


def install_extra(extra: str | None) -> str:
    """The command that adds an extra to this installation, or without one what every installation has."""
    wanted = f" --extra {extra}" if extra else ""
    if _is_uv_clone():
        return f"{_uv()} sync{_project()} --inexact{wanted}"
    name = shlex.quote(f"operant[{extra}]" if extra else "operant")
    if is_clone():
        name = "-e " + shlex.quote(f"{CLONE}[{extra}]" if extra else str(CLONE))
    return f"{_pip_install()} {name}"


def install_package(package: str) -> str:
    """The command that adds a package which is in no extra."""
    if _is_uv_clone():
        return f"{_uv()} pip install --python {shlex.quote(sys.executable)} {shlex.quote(package)}"
    return f"{_pip_install()} {shlex.quote(package)}"


def install_module(module: str) -> str:
    """The command that brings a module that cannot be imported."""
    name = _package_of(module)
    if name in CORE:
        return install_extra(None)
    return install_extra(EXTRA_OF[name]) if name in EXTRA_OF else install_package(name.replace("_", "-"))


def missing_package(module: str, wanted_by: str, extra: str | None = None) -> UsageError:
    """The one clear line for a package that is absent; `extra` is the one to install where several bring it."""
    name = _package_of(module)
    remedy = install_extra(extra) if extra else install_module(name)
    return UsageError(f"{wanted_by} needs the package {name}, which is not installed", remedy=remedy)


def _package_of(module: str) -> str:
    """Its outermost package, but for modules that come in a package of their own."""
    return module if module in EXTRA_OF else module.partition(".")[0]


def is_clone() -> bool:
    """Whether this package lies in a clone of the repository, whose files can be sent and installed."""
    return (CLONE / "pyproject.toml").is_file() and (CLONE / "scripts" / "uv").is_file()


def _is_uv_clone() -> bool:
    """Whether this is the environment that `scripts/uv` keeps beside the clone."""
    return is_clone() and Path(sys.prefix).resolve() == (CLONE / ".venv").resolve()


def _uv() -> str:
    return "scripts/uv" if Path.cwd() == CLONE else shlex.quote(str(CLONE / "scripts" / "uv"))


def _project() -> str:
    return "" if Path.cwd() == CLONE else f" --project {shlex.quote(str(CLONE))}"


def _pip_install() -> str:
    """The pip of this very environment, by its short name where that is the one on the path."""
    found, python = shutil.which("pip"), shlex.quote(sys.executable)
    if found and Path(found).parent == Path(sys.executable).parent:
        return "pip install"
    return f"uv pip install --python {python}" if find_spec("pip") is None else f"{python} -m pip install"
