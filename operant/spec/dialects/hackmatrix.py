"""The command line of HackMatrix's own trainer, of January 2026 and later, translated to settings of a spec.

Its flags count in updates and minibatches where a spec counts in frames and samples, so those that depend on one
another are worked out together, from what the spec says where a flag is not given.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from operant.errors import UsageError
from operant.spec.dialects.table import Table, elsewhere, ignored, refused, same
from operant.spec.reading.diagnostics import VALUE_WIDTH, cut, nearest
from operant.spec.reading.limits import MAX_DIGITS

if TYPE_CHECKING:
    from operant.spec.schema import Spec

UNSCALED = 4
"""The number of minibatches with which the trainer scales a larger batch by itself."""
REFERENCE_SAMPLES = 32_768
LEAST_UPDATES = 3
MOST_LAYERS = 16
CPU_ENVS, CPU_MINIBATCHES = 64, 2
PROJECT = "hackmatrix"
MAX_CHARACTERS = 10_000
PHASES = (
    "its phases change the rules (siphons, credits and energy at the start, fewer transmissions, three rewards) and "
    "pass by the return, and the compiled game has one rule set: leave it out"
)


TABLE = Table(
    (
        same("num-envs", "games at once", "env.num_envs"),
        same("num-steps", "steps of a rollout", "agent.algorithm.time_horizon"),
        elsewhere("total-timesteps", "steps of all games; at least three updates", "env.max_frame"),
        same("lr", "learning rate", "agent.net.optimizer.lr"),
        same("gamma", "discount", "agent.algorithm.gamma"),
        same("gae-lambda", "lambda of GAE", "agent.algorithm.lam"),
        elsewhere(
            "num-minibatches", "parts of an update", "agent.algorithm.minibatch_size, agent.algorithm.auto_scale"
        ),
        same("update-epochs", "passes over an update", "agent.algorithm.training_epoch"),
        same("clip-eps", "clip of ratios", "agent.algorithm.clip_eps"),
        same("vf-coef", "weight of the value loss", "agent.algorithm.val_loss_coef"),
        same("ent-coef", "weight of the entropy", "agent.algorithm.entropy_coef"),
        same("max-grad-norm", "clip of the gradient's norm", "agent.net.optimizer.clip_grad_norm"),
        elsewhere("hidden-dim", "width of hidden layers", "agent.net.hidden"),
        elsewhere("num-layers", "hidden layers", "agent.net.hidden"),
        elsewhere("log-interval", "updates between rows", "meta.log_frequency"),
        elsewhere("save-interval", "updates between checkpoints", "meta.save_frequency"),
        same("save-interval-minutes", "minutes between checkpoints", "meta.save_minutes"),
        same("seed", "seed", "meta.seed"),
        elsewhere("wandb", "feed Weights & Biases", "meta.track"),
        ignored("no-wandb", "feed no tracker", "nothing is uploaded unless meta.track names a tracker"),
        elsewhere("project", "project of the tracker", "meta.track"),
        elsewhere("entity", "team of the tracker", "meta.track"),
        elsewhere("run-name", "name of the run", "name"),
        elsewhere("run-suffix", "end of the run's name", "name"),
        elsewhere("checkpoint-dir", "folder of all runs", "--root"),
        ignored("no-artifact", "upload no checkpoints", "checkpoints go to meta.sync alone, where that is set"),
        elsewhere("resume-run", "go on with a tracker's run", "operant resume RUN"),
        elsewhere("resume", "go on from a checkpoint", "operant resume RUN"),
        ignored("rewind", "cut the tracker back to the checkpoint", "a resumed run does so by itself"),
        elsewhere("auto-tune", "games and minibatches by the device", "env.num_envs, agent.algorithm.minibatch_size"),
        elsewhere("benchmark", "measure the speed, and train nothing", "operant check SPEC"),
        elsewhere("monolithic", "one loop, logged at its end", "meta.log_frequency, meta.save_frequency"),
        refused("curriculum", "easier rules at first, in three phases", PHASES),
        refused("curriculum-start-phase", "the phase to begin with", PHASES),
    )
)
ROWS = {row.place: row for row in TABLE.rows}
SWITCHES = {"wandb", "no-wandb", "no-artifact", "rewind", "auto-tune", "benchmark", "monolithic", "curriculum"}
WORDS = {"project", "entity", "run-name", "run-suffix", "checkpoint-dir", "resume-run", "resume"}
FRACTIONS = {"lr", "gamma", "gae-lambda", "clip-eps", "vf-coef", "ent-coef", "max-grad-norm", "save-interval-minutes"}
NUMBERS: dict[str, Callable[[str], float]] = {
    flag: float if flag in FRACTIONS else int for flag in ROWS if flag not in SWITCHES | WORDS
}


@dataclass(frozen=True)
class Flags:
    """What flags say in a spec's words, as `-s` takes it, and what is said of those that are something else here.

    `root` is where runs shall lie, `resumes` the run to go on with; with `measures` nothing is trained.
    """

    overrides: list[str]
    remarks: list[str]
    root: str | None = None
    resumes: str | None = None
    measures: bool = False


def read_flags(text: str, spec: Spec) -> Flags:
    """What `text` asks of a spec; UsageError names a flag that is unknown, malformed or has no counterpart."""
    given = _parsed(text)
    for flag in given:
        if ROWS[flag].kind == "refused":
            raise UsageError(f"--flags: --{flag} has no counterpart in a spec", remedy=ROWS[flag].said)
    numbers = {flag: _number(flag, value) for flag, value in given.items() if flag in NUMBERS}
    remarks = [f"--{flag}: {ROWS[flag].said}" for flag in given if ROWS[flag].kind == "ignored"]
    numbers |= _tuned(given, numbers, spec, remarks)
    settings = {ROWS[flag].ours[0]: value for flag, value in numbers.items() if ROWS[flag].kind == "same"}
    settings |= _worked_out(given, numbers, spec, remarks) | _named(given, spec) | _tracked(given, remarks)
    resumes = given.get("resume-run", given.get("resume"))
    if resumes is not None:
        remarks.append("--resume: the run goes on exactly where it stopped; there, no more than weights come back")
    overrides = [f"{path}={_written(value)}" for path, value in settings.items()]
    return Flags(overrides, remarks, given.get("checkpoint-dir"), resumes, "benchmark" in given)


def _parsed(text: str) -> dict[str, str]:
    """The flags by name, those without a value as an empty text."""
    if len(text) > MAX_CHARACTERS:
        cause = f"--flags: {len(text):,} characters, and flags have at most {MAX_CHARACTERS:,}"
        raise UsageError(cause, remedy="give the flags of one command line")
    try:
        words = iter(shlex.split(text))
    except ValueError as broken:
        raise UsageError(f"--flags: {broken}", remedy="close the quotation") from None
    given: dict[str, str] = {}
    for word in words:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--")
        if not flag.startswith("--") or name not in ROWS:
            meant = nearest(name, list(ROWS))
            remedy = f"did you mean --{meant}?" if meant else "the flags are those of HackMatrix's trainer"
            raise UsageError(f"--flags: there is no flag {cut(flag, VALUE_WIDTH)}", remedy=remedy)
        if name not in SWITCHES and not equals:
            following = next(words, None)
            if following is None:
                raise UsageError(f"--flags: {flag} lacks its value", remedy=f"{flag} VALUE")
            value = following
        given[name] = value
    return given


def _number(flag: str, value: str) -> float:
    kind = "whole number" if NUMBERS[flag] is int else "number"
    try:
        number = NUMBERS[flag](value.replace("_", "")) if len(value) <= MAX_DIGITS else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"--flags: --{flag} takes a {kind}, not {cut(value, VALUE_WIDTH)!r}", remedy=f"--{flag} N")
    return number


def _of_spec(spec: Spec) -> dict[str, int]:
    """What a spec says where flags do not."""
    algorithm, hidden = spec.agent.algorithm, tuple(getattr(spec.agent.net, "hidden", ()))
    steps = int(getattr(algorithm, "time_horizon", 128))
    part = int(getattr(algorithm, "minibatch_size", 0) or 0) or spec.env.num_envs * steps // UNSCALED
    return {
        "num-envs": spec.env.num_envs,
        "num-steps": steps,
        "num-minibatches": max(1, spec.env.num_envs * steps // max(part, 1)),
        "hidden-dim": int(hidden[0]) if hidden else 256,
        "num-layers": len(hidden) or 2,
    }


def _tuned(given: dict[str, str], numbers: dict[str, float], spec: Spec, remarks: list[str]) -> dict[str, float]:
    """Fewer games and minibatches on a CPU; elsewhere nothing changes."""
    if "auto-tune" not in given:
        return {}
    if spec.meta.device != "cpu":
        remarks.append("--auto-tune: on a GPU nothing changes; with meta.device cpu there are 64 games at most")
        return {}
    found = {**_of_spec(spec), **numbers}
    remarks.append(f"--auto-tune: at most {CPU_ENVS} games and {CPU_MINIBATCHES} minibatches on a CPU")
    return {
        "num-envs": min(found["num-envs"], CPU_ENVS),
        "num-minibatches": min(found["num-minibatches"], CPU_MINIBATCHES),
    }


def _worked_out(given: dict[str, str], numbers: dict[str, float], spec: Spec, remarks: list[str]) -> dict[str, Any]:
    """The settings that follow from several flags together."""
    found = {**_of_spec(spec), **numbers}
    samples, settings = int(found["num-envs"] * found["num-steps"]), dict[str, Any]()
    if numbers.keys() & {"num-envs", "num-steps", "num-minibatches"}:
        settings |= _minibatches(samples, int(found["num-minibatches"]), remarks)
    if numbers.keys() & {"hidden-dim", "num-layers"}:
        if found["num-layers"] > MOST_LAYERS:
            cause = f"--flags: --num-layers takes at most {MOST_LAYERS}, not {found['num-layers']:,}"
            raise UsageError(cause, remedy=f"--num-layers {MOST_LAYERS}")
        settings["agent.net.hidden"] = [int(found["hidden-dim"])] * int(found["num-layers"])
    if "total-timesteps" in numbers:
        settings["env.max_frame"] = samples * max(LEAST_UPDATES, int(numbers["total-timesteps"]) // max(samples, 1))
    for flag, path in (("log-interval", "meta.log_frequency"), ("save-interval", "meta.save_frequency")):
        if flag in numbers:
            settings[path] = samples * int(numbers[flag])
    if "monolithic" in given:
        frames = settings.get("env.max_frame", spec.env.max_frame)
        settings |= {"meta.log_frequency": frames, "meta.save_frequency": frames}
    return settings


def _minibatches(samples: int, parts: int, remarks: list[str]) -> dict[str, Any]:
    if parts < 1 or samples < 1 or samples % parts:
        cause = f"--flags: {parts} minibatches do not divide {samples:,} samples (num-envs x num-steps)"
        raise UsageError(cause, remedy="--num-minibatches 4")
    scaled = parts == UNSCALED
    if scaled and samples >= 2 * REFERENCE_SAMPLES:
        said = "more minibatches and fewer epochs with a larger batch, as there since February 2026"
        remarks.append(f"--num-envs: {said}; -s agent.algorithm.auto_scale=false as before")
    return {"agent.algorithm.minibatch_size": samples // parts, "agent.algorithm.auto_scale": scaled}


def _named(given: dict[str, str], spec: Spec) -> dict[str, Any]:
    """The run's name; a suffix is for one that is not given."""
    if "run-name" in given:
        return {"name": given["run-name"]}
    return {"name": f"{spec.name}-{given['run-suffix']}"} if "run-suffix" in given else {}


def _tracked(given: dict[str, str], remarks: list[str]) -> dict[str, Any]:
    if "wandb" not in given:
        remarks += [f"--{flag}: nothing is tracked without --wandb" for flag in ("project", "entity") if flag in given]
        return {}
    entity = {"entity": given["entity"]} if "entity" in given else {}
    return {"meta.track": [{"name": "wandb", "project": given.get("project", PROJECT), **entity}]}


def _written(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | list | str) else str(value)
