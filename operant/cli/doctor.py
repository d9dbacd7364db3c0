"""`operant doctor`: what this machine has, what is missing, and how fast it trains."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from operant import __version__
from operant.cli.options import AsJson
from operant.cli.output import document, plural, say, size
from operant.errors import EXIT_DONE, OperantError
from operant.install import install_extra

CORE = ("gymnasium", "numpy", "pydantic", "safetensors", "matplotlib", "rich", "typer")
ENGINES = ("torch", "jax", "transformers")
SPEED_SPEC = "ppo_cartpole"
LITTLE_DISK = 2_000_000_000


def doctor(
    speed: Annotated[bool, typer.Option("--speed/--no-speed", help="Measure how fast this machine trains.")] = True,
    as_json: AsJson = False,
) -> int:
    """Report versions, devices, disk and missing extras, and time a second of training."""
    import platform

    from operant.launch.budget import usable_cores
    from operant.run.provenance import describe_hardware

    if not as_json:
        say(f"operant {__version__}, Python {platform.python_version()}")
    facts: dict[str, Any] = {
        "operant": __version__,
        "python": platform.python_version(),
        "hardware": describe_hardware(),
        "usable_cores": usable_cores(),
        "disk_free_bytes": shutil.disk_usage(Path.cwd()).free,
        "packages": {name: _version(name) for name in (*ENGINES, *CORE)},
        "extras": missing_extras(),
    }
    if not as_json:
        say(*_machine_lines(facts), *_package_lines(facts))
    facts["speed"] = _speed() if speed else None
    if as_json:
        document({**facts, "exit": EXIT_DONE})
    elif speed:
        say(_speed_line(facts["speed"]))
    return EXIT_DONE


def missing_extras() -> dict[str, list[str]]:
    """Each optional extra of the installed package, with the packages of it that are not installed."""
    try:
        extras = metadata.metadata("operant").get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return {}
    return {extra: sorted(set(_missing("operant", extra))) for extra in extras}


def _missing(package: str, extra: str) -> Iterator[str]:
    """Packages that an extra of an installed package needs on this machine and that are not there."""
    from packaging.requirements import Requirement

    for line in metadata.requires(package) or []:
        wanted = Requirement(line)
        is_optional = wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})
        if not (is_optional and wanted.marker and wanted.marker.evaluate({"extra": extra})):
            continue
        if _version(wanted.name) is None:
            yield wanted.name
        else:
            for nested in wanted.extras:
                yield from _missing(wanted.name, nested)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _machine_lines(facts: dict[str, Any]) -> list[str]:
    hardware = facts["hardware"]
    memory = f", {size(hardware['memory_bytes'])} of memory" if hardware["memory_bytes"] else ""
    free = facts["disk_free_bytes"]
    little = "    (little: a run that fills the disk stops)" if free < LITTLE_DISK else ""
    return [
        f"  cpu      {hardware['cpu'] or hardware['machine']}, {plural(facts['usable_cores'], 'usable core')}{memory}",
        f"  gpu      {_gpu_words(hardware['gpus'])}",
        f"  disk     {size(free)} free here{little}",
    ]


def _gpu_words(gpus: Any) -> str:
    return ", ".join(str(gpu.get("name", gpu)) if isinstance(gpu, dict) else str(gpu) for gpu in gpus or []) or "none"


def _package_lines(facts: dict[str, Any]) -> list[str]:
    present = [f"{name} {version}" for name, version in facts["packages"].items() if version]
    absent = [name for name in CORE if not facts["packages"][name]]
    lines = [f"  has      {', '.join(present)}"]
    if absent:
        lines.append(f"  lacks    {', '.join(absent)}    install: {install_extra(None)}")
    for extra, packages in facts["extras"].items():
        state = f"lacks {', '.join(packages)}    install: {install_extra(extra)}" if packages else "complete"
        lines.append(f"  extra    {extra}: {state}")
    return lines


def _speed() -> dict[str, Any] | None:
    """A second of real training of a small spec; None where it cannot run."""
    if find_spec("torch") is None or find_spec("gymnasium") is None:
        return None
    from operant.engines import engine_of
    from operant.spec.load import load

    try:
        spec = load(SPEED_SPEC).spec
        estimate = engine_of(spec).estimate(spec)
    except OperantError:
        return None
    return {"spec": SPEED_SPEC, "frames_per_second": estimate.frames_per_second}


def _speed_line(speed: dict[str, Any] | None) -> str:
    from operant.report.formatting import compact

    if speed is None:
        return "  speed    not measured: training cannot run here yet"
    return f"  speed    {speed['spec']} trains at {compact(speed['frames_per_second'])} frames/s on one thread"
