"""The `meta` section (seeds, logs, how a search is run) and the `search` block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from operant.spec.dialects.conversion import Conversion, Section
from operant.spec.dialects.slm.env import Budget
from operant.spec.errors import dotted
from operant.spec.reading.document import KeyPath

LOG_FREQUENCY = 10_000  # SLM-Lab's default
FREQUENCY, TIMES = 10_000, 20
SEARCH_ONLY = "left out: it governs a search, and there is no search block"
BOOKKEEPING = "left out: SLM-Lab's own bookkeeping"
DROPPED = {
    "max_trial": SEARCH_ONLY,
    "search_resources": SEARCH_ONLY,
    "search_scheduler": SEARCH_ONLY,
    "search": SEARCH_ONLY,
    "random_seed": "left out: SLM-Lab draws its seed from the clock; here `meta.seed` sets it",
    **dict.fromkeys(
        (
            "experiment", "trial", "session", "experiment_ts", "cuda_offset", "resume", "git_sha", "predir", "prepath",
            "graph_prepath", "info_prepath", "log_prepath", "model_prepath",
        ),
        BOOKKEEPING,
    ),
}  # fmt: skip


def meta(section: Section, budget: Budget) -> None:
    """Take over the number of seeds and the frequencies."""
    conversion = section.conversion
    if section.get("distributed", False) is not False:
        conversion.lose(
            section.at("distributed"), "has no counterpart: sessions do not share weights (use more num_envs)"
        )
    section.copy("max_session", "meta.max_session")
    section.copy("log_frequency", "meta.log_frequency", default=LOG_FREQUENCY)
    if section.get("rigorous_eval"):
        section.copy("eval_frequency", "meta.eval_frequency")
        conversion.remark(
            section.at("rigorous_eval"), "every evaluation plays `meta.eval_episodes` on seeds of its own"
        )
    else:
        _own_frequencies(section, budget)
    if isinstance(conversion.theirs.data.get("search"), dict):
        _how_to_search(section)
    section.drop(DROPPED)
    section.close()


def _own_frequencies(section: Section, budget: Budget) -> None:
    """SLM-Lab evaluates nothing unless asked; here a long run is evaluated and saved a fixed number of times."""
    every = max(FREQUENCY, budget.max_frame // TIMES)
    if section.get("eval_frequency") is not None:
        why = f"left out: SLM-Lab reads it only with rigorous_eval; evaluated every {every:,} frames here"
        section.conversion.remark(section.at("eval_frequency"), why)
    if every > FREQUENCY:
        section.conversion.set("meta.eval_frequency", every, section.at("eval_frequency"))
        section.conversion.set("meta.save_frequency", every, section.path)


SCHEDULER_LOST = "has no counterpart: rungs follow from grace_period and reduction_factor"


def _how_to_search(section: Section) -> None:
    """Take over how many trials there are, what each may use and when they are stopped."""
    conversion = section.conversion
    section.copy("max_trial", "meta.max_trial")
    resources = section.below("search_resources")
    if resources.get("cpu") is not None:
        conversion.set("meta.search_resources.cpu", math.ceil(resources.get("cpu")), resources.at("cpu"))
    resources.copy("gpu", "meta.search_resources.gpu")
    resources.close()
    scheduler = section.below("search_scheduler")
    if not scheduler.data:
        return
    scheduler.copy("grace_period", "meta.search_scheduler.grace_period")
    scheduler.copy("reduction_factor", "meta.search_scheduler.reduction_factor")
    for key in scheduler.unread():
        conversion.lose(scheduler.at(key), SCHEDULER_LOST)
        scheduler.get(key)
    grace = scheduler.get("grace_period")
    asked = conversion.native.data["meta"].get("eval_frequency", FREQUENCY)
    if isinstance(grace, int | float) and grace < asked:
        # A trial is judged by an evaluation, of which there must be one before the first rung.
        conversion.set("meta.eval_frequency", grace, scheduler.at("grace_period"))


GRID = "grid_search"


def search(conversion: Conversion) -> None:
    """Take over a search block, if there is one."""
    block = conversion.theirs.data.get("search")
    if not isinstance(block, dict):
        return
    for at, body in _entries(block, ("search",)):
        path, _, kind = dotted(at[1:]).partition("__")
        home = conversion.homes.get(tuple(part for part in path.split(".") if part != "0"))
        if home is None or not kind:
            conversion.lose(
                at, f"cannot be searched: no one setting here is {path}" if kind else "names no distribution"
            )
            continue
        if kind == GRID:
            conversion.remark(at, "its values are drawn by `choice`, not tried in turn")
        conversion.set(("search", f"{dotted(home)}__{'choice' if kind == GRID else kind}"), body, at)


def _entries(block: dict[str, Any], at: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """The dimensions of a flat or nested block, with their places."""
    for key, body in block.items():
        if isinstance(body, dict) and "__" not in key:
            yield from _entries(body, (*at, key))
        else:
            yield (*at, key), body
