"""Keeping secrets out of the record: what of the environment, and of any text, may be written down."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

REDACTED = "<redacted>"

# Values are written only for these; a harmless prefix does not excuse a name that sounds secret.
HARMLESS_PREFIXES = (
    "ATEN_",
    "CUBLAS_",
    "CUDA_",
    "DNNL_",
    "GLIBC_TUNABLES",
    "JAX_",
    "KMP_",
    "LANG",
    "LC_",
    "MKL_",
    "MUJOCO_GL",
    "NCCL_",
    "NPY_",
    "NUMEXPR_",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "OPERANT_",
    "PYOPENGL_PLATFORM",
    "PYTHON",
    "PYTORCH_",
    "SDL_",
    "SLURM_",
    "TF_",
    "TORCH",
    "TZ",
    "VECLIB_",
    "XLA_",
)
SHORTEST_SECRET = 6

_SECRET_NAME = re.compile(r"token|key|secret|pass|pwd|credential|auth|jwt|cookie|signature|private", re.IGNORECASE)
_SECRET_OPTION = re.compile(r"--?[\w-]*(?:token|api-?_?key|secret|password|passwd|credential)s?", re.IGNORECASE)
_URL_LOGIN = re.compile(r"(\w+://)[^/@\s]+@")


def redact(text: str) -> str:
    """The text without the value of any secret in this process's environment, and without logins in addresses."""
    for secret in _secrets(os.environ):
        text = text.replace(secret, REDACTED)
    return _URL_LOGIN.sub(rf"\g<1>{REDACTED}@", text)


def redact_command(words: Sequence[str]) -> list[str]:
    """A command line without secrets: also what follows an option such as `--token` or `--api-key=`."""
    kept: list[str] = []
    hide_next = False
    for word in words:
        option, equals, _ = word.partition("=")
        is_secret = _SECRET_OPTION.fullmatch(option) is not None
        if hide_next:
            kept.append(REDACTED)
        else:
            kept.append(f"{option}={REDACTED}" if is_secret and equals else redact(word))
        hide_next = is_secret and not equals
    return kept


def harmless_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Every name, and the value where it cannot be a secret."""
    return {name: _harmless_value(name, value) for name, value in sorted(environment.items())}


def _harmless_value(name: str, value: str) -> str:
    if not name.startswith(HARMLESS_PREFIXES) or _SECRET_NAME.search(name):
        return REDACTED
    return redact(value)


def _secrets(environment: Mapping[str, str]) -> list[str]:
    """Values of variables whose name sounds secret, longest first.

    Very short values would garble any text, and a path only says where a secret lies.
    """
    values = {value for name, value in environment.items() if _SECRET_NAME.search(name)}
    return sorted(
        (each for each in values if len(each) >= SHORTEST_SECRET and not _is_path(each)), key=len, reverse=True
    )


def _is_path(value: str) -> bool:
    return os.path.isabs(value) and os.path.exists(value)
