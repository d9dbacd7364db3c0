"""The spec that a run keeps, read back: it was right when the run was made, by the Operant of that day.

A run keeps every setting, defaults included, so new defaults do not change it. A setting that came later has in older
runs the value by which they go on as they began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from operant.errors import RunError, UsageError
from operant.spec.registry import NOT_FOUND
from operant.spec.schema import OF_A_RUN, Spec
from operant.spec.settings.language_algorithms import VERIFIED
from operant.spec.settings.sections import MetaSpec
from operant.spec.settings.trackers import TRACKERS, TrackerSpec
from operant.spec.validation.cross_field import find_conflicts, setting

OLD_LOGPROBS = "trainer"
"""What ratios of language models compared with before there was `old_logprobs`."""


def stored(data: Mapping[str, Any]) -> Spec:
    """The spec of a run; a `RunError` that names the setting where this version has other ones.

    Trackers of other packages are left out: whatever is wrong with one must not keep a run from training.
    """
    try:
        return Spec.model_validate(_without_own_trackers(_completed(data)), context={OF_A_RUN: True})
    except ValidationError as trouble:
        fault = trouble.errors()[0]
        if fault["type"] == NOT_FOUND:
            problem: UsageError = fault["ctx"]["problem"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
            raise RunError(problem.cause, remedy=problem.remedy) from trouble
        place = ".".join(str(part) for part in fault["loc"])
        raise RunError(
            f"the spec of this run does not fit this version of Operant: {place}: {fault['msg']}",
            remedy="use the version that made the run (its folder provenance names the commit), or train anew",
        ) from trouble


def stored_trackers(data: Mapping[str, Any]) -> tuple[TrackerSpec, ...]:
    """The trackers of a run, with those of other packages; a `RunError` where one cannot be loaded."""
    try:
        return MetaSpec.model_validate({"track": _trackers_in(data)}).track
    except ValidationError as trouble:
        raise RunError(f"meta.track: {trouble.errors()[0]['msg']}", remedy="operant help tracker") from trouble


def aged(data: Mapping[str, Any]) -> list[str]:
    """Warnings for a resumed run: settings refused today, and what an older version computed."""
    spec = stored(data)
    refused = [
        f"{each.path} = {setting(spec, each.path)} {each.reason}. This run goes on with it as it began; "
        f"a new one would need {each.valid}"
        for each in find_conflicts(spec)
        if each.allowed_once
    ]
    return refused + _computed_otherwise(data)


def _trackers_in(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    meta = data.get("meta")
    return list(meta.get("track", [])) if isinstance(meta, Mapping) else []


def _without_own_trackers(data: Mapping[str, Any]) -> Mapping[str, Any]:
    trackers = _trackers_in(data)
    builtin = [each for each in trackers if each.get("name") in list(TRACKERS)]
    return data if builtin == trackers else {**data, "meta": {**data["meta"], "track": builtin}}


def _completed(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data with the settings that came after the run was made."""
    if not _is_before_old_logprobs(data):
        return data
    agent = data["agent"]
    return {**data, "agent": {**agent, "algorithm": {**agent["algorithm"], "old_logprobs": OLD_LOGPROBS}}}


def _computed_otherwise(data: Mapping[str, Any]) -> list[str]:
    """Formulas that have changed since the run was made."""
    if not _is_before_old_logprobs(data):
        return []
    algorithm, changed = data["agent"]["algorithm"], []
    if algorithm.get("minibatch_size"):
        changed.append(
            "this run was made when a round's last minibatch could be smaller than the others and count as much; "
            "from here on all completions of a round count the same"
        )
    if algorithm.get("credit") in ("reinforce_pp", "reinforce_pp_baseline"):
        changed.append(
            f"this run was made when {algorithm['credit']} standardised advantages over completions, by the deviation "
            "of rewards; from here on over tokens, by the deviation of the advantages"
        )
    return changed


def _is_before_old_logprobs(data: Mapping[str, Any]) -> bool:
    """Whether an older version made this run of a language model."""
    agent = data.get("agent")
    algorithm = agent.get("algorithm") if isinstance(agent, Mapping) else None
    return isinstance(algorithm, Mapping) and algorithm.get("name") in VERIFIED and "old_logprobs" not in algorithm
