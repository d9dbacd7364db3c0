"""In what two runs or specs differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from operant.api.runs import Experiment, Session, Trial, open_trial
from operant.api.specs import loaded_spec
from operant.errors import UsageError
from operant.report.origin import Origin, trial_origin
from operant.report.run_diff import RunDiff, Side, diff_sides
from operant.spec.load import Loaded
from operant.spec.schema import Spec

SPEC_PREFIX = "spec:"
RunOrSpec = str | Path | Session | Trial | Experiment | Spec | Mapping[str, Any]


def diff(first: RunOrSpec, second: RunOrSpec, /, root: str | Path = "runs") -> RunDiff:
    """In what two runs or specs differ, what most likely matters first: `print` it, or read its `differences`.

    A name stands for its newest run; where there is none, or with `spec:` before it, for the spec of that name.
    Of a search the best trial is meant.
    """
    return diff_sides(_side(first, root), _side(second, root))


def _side(target: RunOrSpec, root: str | Path) -> Side:
    if isinstance(target, Spec | Mapping):
        return _spec_side(loaded_spec(target, None, {}))
    if not isinstance(target, str | Path):
        return _run_side(open_trial(target, root))
    text = str(target)
    if text.startswith(SPEC_PREFIX):
        return _spec_side(loaded_spec(text.removeprefix(SPEC_PREFIX), None, {}))
    if Path(text).is_file():
        return _spec_side(loaded_spec(text, None, {}))
    try:
        trial = open_trial(text, root)
    except UsageError as no_run:
        return _spec_or(text, no_run)
    return _run_side(trial)


def _spec_or(text: str, no_run: UsageError) -> Side:
    """The spec of that name; where there is none either, the error about the run."""
    try:
        return _spec_side(loaded_spec(text, None, {}))
    except UsageError:
        raise no_run from None


def _run_side(trial: Trial) -> Side:
    path = trial.path.resolve()
    return Side(trial_origin(path), path)


def _spec_side(loaded: Loaded) -> Side:
    spec = loaded.spec
    seeds = tuple(range(spec.meta.seed, spec.meta.seed + spec.meta.max_session))
    return Side(Origin(f"the spec {spec.name}", spec.model_dump(mode="json"), seeds))
