"""The `meta` section: seeds, logs and how a search is run."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.env import Budget

LOG_FREQUENCY = 10_000  # SLM-Lab's default
FREQUENCY, TIMES = 10_000, 20
SEARCH_ONLY = "left out: it governs a search, not a run"
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
    ledger = section.ledger
    if section.get("distributed", False) is not False:
        ledger.lose(section.at("distributed"), "has no counterpart: sessions do not share weights (use more num_envs)")
    section.copy("max_session", "meta.max_session")
    section.copy("log_frequency", "meta.log_frequency", default=LOG_FREQUENCY)
    if section.get("rigorous_eval"):
        section.copy("eval_frequency", "meta.eval_frequency")
        ledger.remark(section.at("rigorous_eval"), "every evaluation plays `meta.eval_episodes` on seeds of its own")
    else:
        _own_frequencies(section, budget)
    section.drop(DROPPED)
    section.close()


def _own_frequencies(section: Section, budget: Budget) -> None:
    """SLM-Lab evaluates nothing unless asked; here a long run is evaluated and saved a fixed number of times."""
    every = max(FREQUENCY, budget.max_frame // TIMES)
    if section.get("eval_frequency") is not None:
        why = f"left out: SLM-Lab reads it only with rigorous_eval; evaluated every {every:,} frames here"
        section.ledger.remark(section.at("eval_frequency"), why)
    if every > FREQUENCY:
        section.ledger.set("meta.eval_frequency", every, section.at("eval_frequency"))
        section.ledger.set("meta.save_frequency", every, section.path)
