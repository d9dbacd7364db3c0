"""What rliable says of score matrices: run by an interpreter that has it, reads and writes JSON.

    PYTHON tests/oracle/rliable_reference.py < questions.json > answers.json

A question is `{"a": [[...]], "b": [[...]], "at": [...]}` with scores `[seed][task]`. rliable 1.2.0 needs pandas
below 3 (arch 7.2.0 cannot be imported with a newer one).
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from typing import Any

PINNED = {"rliable": "1.2.0", "arch": "7.2.0", "pandas": "2.3.3", "scipy": "1.17.1"}
RESAMPLES = 50_000


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Points and 95 % intervals of every statistic."""
    import numpy as np
    from rliable import library, metrics  # pyright: ignore[reportMissingImports]

    a, b, at = (np.array(question[key]) for key in ("a", "b", "at"))
    functions = {
        "iqm": metrics.aggregate_iqm,
        "mean": metrics.aggregate_mean,
        "median": metrics.aggregate_median,
        "optimality_gap": metrics.aggregate_optimality_gap,
    }
    points, ends = library.get_interval_estimates(
        {"a": a}, lambda scores: np.array([each(scores) for each in functions.values()]), reps=RESAMPLES
    )
    found = {name: [points["a"][k], ends["a"][0][k], ends["a"][1][k]] for k, name in enumerate(functions)}
    point, end = library.get_interval_estimates(
        {"pair": (a, b)}, metrics.probability_of_improvement, reps=question["pair_resamples"]
    )
    found["probability_of_improvement"] = [point["pair"], end["pair"][0][0], end["pair"][1][0]]
    share, band = library.create_performance_profile({"a": a}, at, reps=2000)
    found["profile"] = [share["a"].tolist(), *(side.tolist() for side in band["a"])]
    return {name: [getattr(value, "item", lambda value=value: value)() for value in row] for name, row in found.items()}


if __name__ == "__main__":
    versions = {name: metadata.version(name) for name in PINNED}
    if versions != PINNED:
        sys.exit(f"this interpreter has {versions}; the reference values are of {PINNED}")
    json.dump({"versions": versions, "answers": [answer(each) for each in json.load(sys.stdin)]}, sys.stdout, indent=1)
