"""In what two runs differ, what most likely matters first: settings, seeds, code, packages, arithmetic, machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

from operant.report.code_changes import code_differences
from operant.report.origin import Origin

# Packages that compute or simulate: another version of one may change any number.
COMPUTING = (
    *(
        "torch",
        "jax",
        "jaxlib",
        "numpy",
        "scipy",
        "flax",
        "optax",
        "triton",
        "transformers",
        "tokenizers",
        "peft",
        "vllm",
    ),
    *("gymnasium", "ale-py", "mujoco", "mujoco-mjx", "box2d", "box2d-py", "brax", "gymnax"),
    *("math-verify", "reasoning-gym", "verifiers"),
)
PROBLEM_SETTINGS = ("env.name", "agent.algorithm.name", "agent.model.name", "agent.net.type")
MEASURING = ("meta.eval_", "meta.final_")
COMPUTE_SETTINGS = tuple(
    f"meta.{name}" for name in ("threads", "processes", "device", "devices", "precision", "compile", "storage")
)
# Variables that choose how numbers are computed; the others are told last.
ARITHMETIC_VARIABLES = (
    *("ATEN_", "CUBLAS_", "CUDA_", "DNNL_", "GLIBC_TUNABLES", "JAX_", "KMP_", "MKL_", "NPY_", "OMP_", "ONEDNN_"),
    *("OPENBLAS_", "PYTORCH_", "TORCH", "VECLIB_", "XLA_"),
)
NOT_THERE = "not there"
LONGEST = 60


class Rank(IntEnum):
    """How likely a difference is to matter; the lowest first."""

    PROBLEM = 0
    LEARNING = 1
    SEED = 2
    CODE = 3
    PACKAGE = 4
    ARITHMETIC = 5
    MEASURING = 6
    PYTHON = 7
    HARDWARE = 8
    OTHER_PACKAGE = 9
    COSMETIC = 10
    ENVIRONMENT = 11


CAUSES = range(Rank.PROBLEM, Rank.HARDWARE + 1)
"""Ranks of what can change the numbers of a run."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same: `a` and `b` as text, and for code the lines that changed."""

    rank: Rank
    kind: str
    name: str
    a: str
    b: str
    lines: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The same for `--json`."""
        return {**asdict(self), "rank": int(self.rank), "lines": list(self.lines)}


def differences(a: Origin, b: Origin) -> list[Difference]:
    """Everything in which two origins differ, in order of what most likely matters."""
    found = [*_settings(a, b), *_seeds(a, b)]
    if a.is_run and b.is_run:
        found += [
            Difference(Rank.CODE if each.acts else Rank.COSMETIC, "code", each.name, each.a, each.b, each.lines)
            for each in code_differences(a, b)
        ]
        found += [*_packages(a, b), *_arithmetic(a, b), *_machine(a, b), *_environment(a, b)]
    return sorted(found, key=lambda each: (each.rank, each.name))


def _settings(a: Origin, b: Origin) -> Iterator[Difference]:
    for name, one, other in _changed(leaves(a.spec), leaves(b.spec)):
        # Seeds are compared as those that were used.
        if name != "meta.seed":
            yield Difference(_rank_of_setting(name), "setting", name, one, other)


def _rank_of_setting(name: str) -> Rank:
    if name in PROBLEM_SETTINGS:
        return Rank.PROBLEM
    if name.startswith(("agent.", "env.")):
        return Rank.LEARNING
    if name.startswith(MEASURING):
        return Rank.MEASURING
    return Rank.ARITHMETIC if name in COMPUTE_SETTINGS else Rank.COSMETIC


def _seeds(a: Origin, b: Origin) -> Iterator[Difference]:
    if a.seeds != b.seeds:
        yield Difference(Rank.SEED, "seed", "seed", ", ".join(map(str, a.seeds)), ", ".join(map(str, b.seeds)))


def _packages(a: Origin, b: Origin) -> Iterator[Difference]:
    for name, one, other in _changed(a.provenance.get("packages", {}), b.provenance.get("packages", {})):
        computes = name.lower().replace("_", "-") in COMPUTING
        yield Difference(Rank.PACKAGE if computes else Rank.OTHER_PACKAGE, "package", name, one, other)


def _arithmetic(a: Origin, b: Origin) -> Iterator[Difference]:
    """Facts that both have recorded: an older run, or another engine, recorded others."""
    facts = [leaves(_facts(each, "arithmetic")) for each in (a, b)]
    common = facts[0].keys() & facts[1].keys()
    for name, one, other in _changed(*({name: each[name] for name in each if name in common} for each in facts)):
        yield Difference(Rank.ARITHMETIC, "arithmetic", name, one, other)
    if a.threads != b.threads:
        yield Difference(Rank.ARITHMETIC, "arithmetic", "threads", str(a.threads), str(b.threads))


def _machine(a: Origin, b: Origin) -> Iterator[Difference]:
    for name, one, other in _changed(_facts(a, "python"), _facts(b, "python")):
        yield Difference(Rank.PYTHON, "python", name, one, other)
    for name, one, other in _changed(_facts(a, "hardware"), _facts(b, "hardware")):
        yield Difference(Rank.HARDWARE, "hardware", name, one, other)


def _environment(a: Origin, b: Origin) -> Iterator[Difference]:
    """Variables of which the value was recorded; those of which only the name is are no news."""
    kept = (
        {name: value for name, value in _facts(each, "environment").items() if "<redacted>" not in str(value)}
        for each in (a, b)
    )
    for name, one, other in _changed(*kept):
        computes = name.startswith(ARITHMETIC_VARIABLES)
        rank = Rank.ARITHMETIC if computes else Rank.ENVIRONMENT
        yield Difference(rank, "arithmetic" if computes else "environment", name, one, other)


def _facts(origin: Origin, name: str) -> Mapping[str, Any]:
    found = origin.provenance.get(name)
    return found if isinstance(found, Mapping) else {}


def _changed(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The names whose values differ, with both values as text."""
    for name in dict.fromkeys([*a, *b]):
        one, other = a.get(name, NOT_THERE), b.get(name, NOT_THERE)
        if one != other:
            yield name, *_apart(one, other)


def _apart(one: Any, other: Any) -> tuple[str, str]:
    """Two values as text; of two long lists what only one of them has."""
    if isinstance(one, list) and isinstance(other, list) and len(json.dumps([one, other], default=str)) > LONGEST:
        one, other = ([each for each in mine if each not in theirs] for mine, theirs in ((one, other), (other, one)))
    return _text(one), _text(other)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def leaves(data: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested settings by dotted path; lists are values."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        path = f"{above}{name}"
        found |= leaves(value, f"{path}.") if isinstance(value, Mapping) and value else {path: value}
    return found
