"""`operant check`: is the spec right, what does it add up to, and what will it cost?"""

from __future__ import annotations

import math
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.options import AsJson, Overrides, SpecName, Target, TrainerFlags
from operant.cli.output import aside, document, plural, say, size
from operant.errors import EXIT_DONE, EXIT_FAILED, UsageError

if TYPE_CHECKING:
    from operant.launch.budget import Budget
    from operant.run.expense import MemoryForecast
    from operant.spec.schema import Spec

PATIENCE = 10.0
"""Seconds of measuring after which there is a word about it."""


def check(
    target: Target,
    name: SpecName = None,
    overrides: Overrides = None,
    measure: Annotated[
        bool, typer.Option("--estimate/--no-estimate", help="Train for a second in memory to estimate time and disk.")
    ] = True,
    tune: Annotated[
        bool, typer.Option("--tune", help="Measure how many environments this device plays quickest (jax engine).")
    ] = False,
    contract: Annotated[
        bool,
        typer.Option(
            "--contract",
            help="Train it for a few updates, kill it, resume it, evaluate it, and say which promises it keeps. "
            "TARGET may be a part: module:Name of an environment, task, algorithm or network.",
        ),
    ] = False,
    device_memory: Annotated[
        str | None,
        typer.Option(
            "--device-memory",
            metavar="GPU",
            help="Foretell the memory of a language run on a GPU that need not be here: h200, h100, a100-80, l4, "
            "rtx4090, .. or an amount such as 80GiB.",
            show_default=False,
        ),
    ] = None,
    flags: TrainerFlags = None,
    as_json: AsJson = False,
) -> int:
    """Validate a spec, show what its numbers add up to, and estimate time, memory and disk. Writes nothing.

    \b
      operant check ppo_cartpole
      operant check my_spec.yaml -s env.num_envs=16
      operant check grpo_smollm2_largest --device-memory l4
      operant check --contract my_envs:MyEnv
    """
    if contract:
        return _check_contract(target, name, overrides or [], as_json)
    from operant.api.specs import validate
    from operant.cli.spec_summary import asked_by_flags, show_evaluation, summary_line, translation_lines
    from operant.engines import engine_of, missing_for
    from operant.envs.cores import CORES_VARIABLE
    from operant.launch.budget import cores_each
    from operant.spec.load import load
    from operant.trackers.start import require_trackers

    if (code := show_evaluation(target, as_json)) is not None:
        return code
    asked = asked_by_flags(flags, target, name, overrides or [])
    loaded = load(target, name, [*asked.overrides, *(overrides or [])])
    spec = loaded.spec
    require_trackers(spec.meta.track)
    memory = validate(spec, target, device_memory, forecast=True)
    drawn = _drawn(spec, target, device_memory)
    if not as_json:
        say(f"ok  {summary_line(spec)}", *translation_lines(loaded), *asked.remarks)
        if drawn:
            say(f"    search: {plural(spec.meta.max_trial, 'trial')}, such as {drawn}")
    budget = _budget(spec)
    # The estimate is of one session beside the others, which have their share of the cores.
    os.environ[CORES_VARIABLE] = str(cores_each(budget.workers))
    missing = missing_for(spec)
    # What is measured here says nothing of a device that is elsewhere.
    measured = measure and not missing and device_memory is None
    costs = _costs(_estimate(engine_of(spec), spec), spec, budget) if measured else {}
    if memory is not None and not as_json:
        say(*(f"    {line}" for line in _memory_lines(memory, budget)))
    if costs and not as_json:
        say(*(f"    {line}" for line in _cost_lines(costs, budget)))
    if missing and not as_json:
        say(f"    to train: {missing.cause}    install: {missing.remedy}")
    tried = _tuned(spec, aside if as_json else say) if tune else []
    if as_json:
        remarks = [str(each) for each in loaded.remarks] + asked.remarks
        facts = {"ok": True, "spec": spec.model_dump(mode="json"), "remarks": remarks, "estimate": costs or None}
        facts |= {"missing": missing.as_dict()} if missing else {}
        facts |= {"memory": _memory_facts(memory)} if memory else {}
        document({**facts, **({"tuned": tried} if tune else {}), "exit": EXIT_DONE})
    return EXIT_DONE


def _estimate(engine: Any, spec: Spec) -> Any:
    """The engine's estimate of a session; a word to those who wait for one of a large model on few cores."""
    slow = threading.Timer(
        PATIENCE, aside, ["    measuring whole rounds, which may take minutes; --no-estimate skips it"]
    )
    slow.daemon = True
    slow.start()
    try:
        return engine.estimate(spec)
    finally:
        slow.cancel()


def _memory_facts(memory: MemoryForecast) -> dict[str, Any]:
    told = ("device", "device_bytes", "phases", "peak", "peak_phase")
    return {name: getattr(memory, name) for name in told}


def _memory_lines(memory: MemoryForecast, budget: Budget) -> list[str]:
    """Memory by part, and a warning where sessions at a time need more than the device has."""
    together = budget.workers * memory.peak
    if memory.device_bytes is None or together <= memory.device_bytes:
        return memory.lines
    return [*memory.lines, f"warning: {plural(budget.workers, 'session')} at a time need {size(together)} of memory"]


def _drawn(spec: Spec, target: str, device_memory: str | None) -> str | None:
    """One draw of the search space, which the engine has accepted; None without a search block."""
    from random import Random

    from operant.api.specs import validate
    from operant.hpo.trials import trial_spec
    from operant.report.search_table import settings_text
    from operant.spec.space import TRIES, by_setting, parse, sample

    space, rng = parse(spec.search), Random(0)
    for _ in range(TRIES if space else 0):
        settings = sample(space, rng)
        trial = trial_spec(spec, settings)
        if trial is not None:
            validate(trial, target, device_memory)
            return settings_text(by_setting(settings))
    return None


def _budget(spec: Spec) -> Budget:
    """How many sessions would train at once, with how many threads each."""
    from operant.engines import trains_together
    from operant.launch.budget import Budget, share

    budget = share(spec.meta.max_session, spec.meta.threads, processes=spec.meta.processes)
    return Budget(spec.meta.max_session, budget.threads) if trains_together(spec) else budget


def _check_contract(target: str, name: str | None, overrides: list[str], as_json: bool) -> int:
    """Tell each promise as it is tried, in a folder that is taken away afterwards."""
    from operant.api.specs import validate
    from operant.contract.runner import run_contract
    from operant.contract.targets import contract_spec

    spec = contract_spec(target, name, overrides)
    validate(spec, target)
    found = []
    with TemporaryDirectory(prefix="operant-contract-") as folder:
        for finding in run_contract(spec, Path(folder)):
            found.append(finding)
            (aside if as_json else say)(str(finding))
    code = EXIT_DONE if all(finding.kept for finding in found) else EXIT_FAILED
    if as_json:
        document({"target": target, "findings": [asdict(finding) for finding in found], "exit": code})
    return code


def _tuned(spec: Spec, show: Callable[..., None]) -> list[dict[str, Any]]:
    """Print each number of environments as it is measured, and then the fastest setting."""
    from operant.engines import engine_of
    from operant.report.formatting import compact

    engine, tried = engine_of(spec), []
    if not hasattr(engine, "tune"):
        remedy = "operant check SPEC -s env.num_envs=N    (shows the frames per second)"
        raise UsageError(f"the {spec.engine_name} engine has no --tune", remedy=remedy)
    for each in engine.tune(spec):
        tried.append(each)
        show(f"    {each.num_envs:>6,} environments: {compact(each.frames_per_second)} frames/s")
    best = max(tried, key=lambda each: each.frames_per_second)
    show(f"    quickest: {' '.join(f'-s {override}' for override in best.overrides)}")
    return [asdict(each) for each in tried]


def _costs(estimate: Any, spec: Spec, budget: Budget) -> dict[str, Any]:
    """The engine's estimate of one session, scaled to the whole trial."""
    rounds = math.ceil(spec.meta.max_session / budget.workers)
    return {
        "parameters": estimate.parameters,
        "arithmetic": estimate.lines,
        "updates": estimate.updates,
        "frames_per_second": estimate.frames_per_second,
        "tokens_per_second": estimate.tokens_per_second,
        "workers": budget.workers,
        "threads": budget.threads,
        "seconds": estimate.seconds_per_session * rounds,
        "disk_bytes": estimate.disk_bytes * spec.meta.max_session,
        "disk_free_bytes": shutil.disk_usage(Path.cwd()).free,
    }


def _cost_lines(costs: dict[str, Any], budget: Budget) -> list[str]:
    from operant.launch.budget import usable_cores
    from operant.report.formatting import compact, duration

    short = costs["disk_bytes"] > costs["disk_free_bytes"]
    tokens = f" and {compact(costs['tokens_per_second'])} tokens/s" if costs["tokens_per_second"] else ""
    return [
        *costs["arithmetic"],
        f"{costs['parameters']:,} parameters; {compact(costs['frames_per_second'])} frames/s{tokens} per session",
        f"about {duration(costs['seconds'])} on this machine ({plural(usable_cores(), 'core')}: "
        f"{plural(budget.workers, 'session')} at a time, {plural(budget.threads, 'thread')} each), "
        f"{size(costs['disk_bytes'])} of disk",
        *([f"warning: only {size(costs['disk_free_bytes'])} of disk are free here"] if short else []),
    ]
