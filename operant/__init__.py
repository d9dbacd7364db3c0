"""Operant: one lab for reinforcement learning.

    import operant

    trial = operant.train("ppo_cartpole", max_frame=20_000)
    print(trial.score)

The names below are the public API; each is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from operant.api.cards import card
    from operant.api.diff import diff
    from operant.api.evaluation import compare, evaluate
    from operant.api.events import observe
    from operant.api.export import export
    from operant.api.handle import Handle
    from operant.api.launching import launch
    from operant.api.page import write_report
    from operant.api.runs import Experiment, Session, Trial, list_runs, open
    from operant.api.search import SearchResult, search
    from operant.api.specs import load_spec
    from operant.api.store import pull, push, sync
    from operant.api.tagging import archive, tag
    from operant.api.tracking import track
    from operant.api.training import resume, start, train
    from operant.api.verify import verify
    from operant.benchmark.bench import bench
    from operant.errors import OperantError
    from operant.spec.schema import Spec

_PUBLIC = {
    "Experiment": "operant.api.runs",
    "Handle": "operant.api.handle",
    "OperantError": "operant.errors",
    "SearchResult": "operant.api.search",
    "Session": "operant.api.runs",
    "Spec": "operant.spec.schema",
    "Trial": "operant.api.runs",
    "archive": "operant.api.tagging",
    "card": "operant.api.cards",
    "bench": "operant.benchmark.bench",
    "compare": "operant.api.evaluation",
    "diff": "operant.api.diff",
    "evaluate": "operant.api.evaluation",
    "export": "operant.api.export",
    "launch": "operant.api.launching",
    "list_runs": "operant.api.runs",
    "load_spec": "operant.api.specs",
    "observe": "operant.api.events",
    "open": "operant.api.runs",
    "pull": "operant.api.store",
    "push": "operant.api.store",
    "resume": "operant.api.training",
    "search": "operant.api.search",
    "start": "operant.api.training",
    "sync": "operant.api.store",
    "tag": "operant.api.tagging",
    "track": "operant.api.tracking",
    "train": "operant.api.training",
    "verify": "operant.api.verify",
    "write_report": "operant.api.page",
}

__all__ = [
    "Experiment",
    "Handle",
    "OperantError",
    "SearchResult",
    "Session",
    "Spec",
    "Trial",
    "__version__",
    "archive",
    "bench",
    "card",
    "compare",
    "diff",
    "evaluate",
    "export",
    "launch",
    "list_runs",
    "load_spec",
    "observe",
    "open",
    "pull",
    "push",
    "resume",
    "search",
    "start",
    "sync",
    "tag",
    "track",
    "train",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """The public name, loaded now: `import operant` itself loads nothing heavy."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'operant' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
