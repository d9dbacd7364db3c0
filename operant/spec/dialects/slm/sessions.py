"""The `meta` section: sessions, evaluations, and how a search is run."""

from __future__ import annotations

import math

from operant.spec.dialects.conversion import Section
from operant.spec.dialects.slm.sizes import sizes_of

FREQUENCY, TIMES = 10_000, 20
BOOKKEEPING = (
    "experiment", "trial", "session", "experiment_ts", "cuda_offset", "resume", "git_sha", "predir", "prepath",
    "graph_prepath", "info_prepath", "log_prepath", "model_prepath",
)  # fmt: skip


def distributed(section: Section, key: str) -> None:
    """Workers that train one set of weights, each at its own pace, become environments that play in step."""
    mode, sizes = section.get(key, False), sizes_of(section.conversion)
    if mode in ("shared", "synced"):
        why = (
            f"trains in step here: {sizes.workers} workers x num_envs {sizes.num_envs} play as {sizes.all_envs}"
            " environments of one run, whose updates are of all of them together"
        )
        section.remark(key, why)
    elif mode is not False:
        section.lose(key, "has no counterpart: there are shared and synced")


def count(section: Section, key: str) -> None:
    """Sessions are runs, unless they share weights."""
    sizes = sizes_of(section.conversion)
    if sizes.workers > 1:
        section.set(key, "meta.max_session", 1, f"{sizes.workers} workers become one run of {sizes.all_envs} envs")
        section.get(key)
    else:
        section.copy(key, "meta.max_session")


def evaluation(section: Section, key: str) -> None:
    """SLM-Lab evaluates nothing unless asked; here a long run is evaluated and saved a fixed number of times."""
    conversion = section.conversion
    if section.get(key):
        section.copy("eval_frequency", "meta.eval_frequency")
        section.remark(key, "every evaluation plays `meta.eval_episodes` on seeds of its own")
        return
    every = max(FREQUENCY, sizes_of(conversion).max_frame // TIMES)
    if section.get("eval_frequency") is not None:
        why = f"left out: SLM-Lab reads it only with rigorous_eval; evaluated every {every:,} frames here"
        section.remark("eval_frequency", why)
    if every > FREQUENCY:
        section.set("eval_frequency", "meta.eval_frequency", every)
        conversion.set("meta.save_frequency", every, section.path)


SEARCH_ONLY = "left out: it governs a search, and there is no search block"
SCHEDULER_LOST = "has no counterpart: rungs follow from grace_period and reduction_factor"


def trials(section: Section, key: str) -> None:
    """How many trials there are, what each may use and when they are stopped; nothing without a search."""
    if not isinstance(section.conversion.theirs.data.get("search"), dict):
        section.drop(dict.fromkeys((key, "search_resources", "search_scheduler"), SEARCH_ONLY))
        return
    section.copy(key, "meta.max_trial")
    resources = section.below("search_resources")
    if resources.number("cpu") is not None and abs(resources.get("cpu")) < 10**9:
        resources.set("cpu", "meta.search_resources.cpu", math.ceil(resources.get("cpu")))
    resources.copy("gpu", "meta.search_resources.gpu")
    if section.below("search_scheduler").data:
        _scheduler(section.below("search_scheduler"))


def _scheduler(scheduler: Section) -> None:
    conversion = scheduler.conversion
    scheduler.copy("grace_period", "meta.search_scheduler.grace_period")
    scheduler.copy("reduction_factor", "meta.search_scheduler.reduction_factor")
    for key in scheduler.unread():
        scheduler.lose(key, SCHEDULER_LOST)
        scheduler.get(key)
    grace = scheduler.get("grace_period")
    asked = conversion.native.data["meta"].get("eval_frequency", FREQUENCY)
    if isinstance(grace, int | float) and isinstance(asked, int | float) and grace < asked:
        # A trial is judged by an evaluation, of which there must be one before the first rung.
        scheduler.set("grace_period", "meta.eval_frequency", grace)
