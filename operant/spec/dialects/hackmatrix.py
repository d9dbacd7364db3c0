"""The command line of HackMatrix's own trainer, translated to settings of a spec.

Its flags count in updates and minibatches where a spec counts in frames and samples, so those that
depend on one another are worked out together, from its defaults where a flag is not given.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from operant.errors import UsageError
from operant.spec.reading.diagnostics import VALUE_WIDTH, cut, nearest
from operant.spec.reading.limits import MAX_DIGITS

SAME = {
    "num-envs": "env.num_envs",
    "num-steps": "agent.algorithm.time_horizon",
    "lr": "agent.net.optimizer.lr",
    "gamma": "agent.algorithm.gamma",
    "gae-lambda": "agent.algorithm.lam",
    "update-epochs": "agent.algorithm.training_epoch",
    "clip-eps": "agent.algorithm.clip_eps",
    "vf-coef": "agent.algorithm.val_loss_coef",
    "ent-coef": "agent.algorithm.entropy_coef",
    "max-grad-norm": "agent.net.optimizer.clip_grad_norm",
    "save-interval-minutes": "meta.save_minutes",
    "seed": "meta.seed",
}
NUMBERS: dict[str, Callable[[str], float]] = {
    **dict.fromkeys(("num-envs", "num-steps", "total-timesteps", "num-minibatches", "update-epochs"), int),
    **dict.fromkeys(("hidden-dim", "num-layers", "log-interval", "save-interval", "seed"), int),
    **dict.fromkeys(("lr", "gamma", "gae-lambda", "clip-eps", "vf-coef", "ent-coef", "max-grad-norm"), float),
    "save-interval-minutes": float,
}
DEFAULTS = {"num-envs": 256, "num-steps": 128, "num-minibatches": 4, "hidden-dim": 256, "num-layers": 2}
UNSCALED = 4
"""The number of minibatches with which the trainer scales a larger batch by itself."""
LEAST_UPDATES = 3
MOST_LAYERS = 16
MAX_CHARACTERS = 10_000
UNNEEDED = {
    "no-wandb": "nothing is uploaded unless a command names it",
    "no-artifact": "nothing is uploaded unless a command names it",
    "auto-tune": "nothing is changed by itself; operant check SPEC --tune measures what suits the device",
}
WORDS = {
    "project": "no tracker is fed while a run trains",
    "entity": "no tracker is fed while a run trains",
    "run-name": "say `--out DIR` to name the run's directory",
    "run-suffix": "say `--out DIR` to name the run's directory",
    "checkpoint-dir": "say `--root DIR`; checkpoints lie in each run's directory",
}
REFUSED = {
    "resume": "a run is resumed by its directory: operant resume RUN",
    "rewind": "operant resume RUN goes on at the checkpoint, and drops the rows after it by itself",
    "curriculum": "the game has one rule set here: leave it out",
    "curriculum-start-phase": "the game has one rule set here: leave it out",
}
SWITCHES = {*UNNEEDED, "rewind", "curriculum"}


@dataclass(frozen=True)
class Flags:
    """What flags say in a spec's words, as `-s` takes it, and what became of those that say nothing there."""

    overrides: list[str]
    remarks: list[str]


def read_flags(text: str) -> Flags:
    """The settings that `text` asks for; UsageError names a flag that is unknown, malformed or has no counterpart."""
    given = _parsed(text)
    for flag, instead in REFUSED.items():
        if flag in given:
            raise UsageError(f"--flags: --{flag} has no counterpart in a spec", remedy=instead)
    numbers = {flag: _number(flag, value) for flag, value in given.items() if flag in NUMBERS}
    settings = {SAME[flag]: value for flag, value in numbers.items() if flag in SAME} | _worked_out(numbers)
    remarks = [f"--{flag}: {why}" for flag, why in {**UNNEEDED, **WORDS}.items() if flag in given]
    return Flags([f"{path}={_written(value)}" for path, value in settings.items()], remarks)


def _parsed(text: str) -> dict[str, str]:
    """The flags by name, those without a value as an empty text."""
    if len(text) > MAX_CHARACTERS:
        cause = f"--flags: {len(text):,} characters, and flags have at most {MAX_CHARACTERS:,}"
        raise UsageError(cause, remedy="give the flags of one command line")
    try:
        words = iter(shlex.split(text))
    except ValueError as broken:
        raise UsageError(f"--flags: {broken}", remedy="close the quotation") from None
    known, given = [*NUMBERS, *UNNEEDED, *WORDS, *REFUSED], {}
    for word in words:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--")
        if not flag.startswith("--") or name not in known:
            raise UsageError(f"--flags: there is no flag {cut(flag, VALUE_WIDTH)}", remedy=_suggestion(name, known))
        if name not in SWITCHES and not equals:
            following = next(words, None)
            if following is None:
                raise UsageError(f"--flags: {flag} lacks its value", remedy=f"{flag} VALUE")
            value = following
        given[name] = value
    return given


def _suggestion(name: str, known: list[str]) -> str:
    meant = nearest(name, known)
    return f"did you mean --{meant}?" if meant else "the flags are those of HackMatrix's trainer"


def _number(flag: str, value: str) -> float:
    kind = "whole number" if NUMBERS[flag] is int else "number"
    try:
        number = NUMBERS[flag](value.replace("_", "")) if len(value) <= MAX_DIGITS else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"--flags: --{flag} takes a {kind}, not {cut(value, VALUE_WIDTH)!r}", remedy=f"--{flag} N")
    return number


def _worked_out(numbers: dict[str, float]) -> dict[str, Any]:
    """The settings that follow from several flags together."""
    all_of = {**DEFAULTS, **numbers}
    samples, parts = int(all_of["num-envs"] * all_of["num-steps"]), int(all_of["num-minibatches"])
    settings: dict[str, Any] = {}
    if numbers.keys() & {"num-envs", "num-steps", "num-minibatches"}:
        if parts < 1 or samples < 1 or samples % parts:
            cause = f"--flags: {parts} minibatches do not divide {samples:,} samples (num-envs x num-steps)"
            raise UsageError(cause, remedy="--num-minibatches 4")
        settings["agent.algorithm.minibatch_size"] = samples // parts
        settings["agent.algorithm.auto_scale"] = parts == UNSCALED
    if numbers.keys() & {"hidden-dim", "num-layers"}:
        if all_of["num-layers"] > MOST_LAYERS:
            cause = f"--flags: --num-layers takes at most {MOST_LAYERS}, not {all_of['num-layers']:,}"
            raise UsageError(cause, remedy=f"--num-layers {MOST_LAYERS}")
        settings["agent.net.hidden"] = [int(all_of["hidden-dim"])] * int(all_of["num-layers"])
    if "total-timesteps" in numbers:
        settings["env.max_frame"] = samples * max(LEAST_UPDATES, int(numbers["total-timesteps"]) // samples)
    for flag, path in (("log-interval", "meta.log_frequency"), ("save-interval", "meta.save_frequency")):
        if flag in numbers:
            settings[path] = samples * int(numbers[flag])
    return settings


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
