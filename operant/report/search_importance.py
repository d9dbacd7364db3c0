"""How much each searched setting mattered for the score.

fANOVA (Hutter et al., 2014: the share of the variance of the score that a setting explains in a forest of regression
trees) where scikit-learn is installed, by Optuna. Elsewhere a rank correlation: of numbers the absolute value of
Spearman's, of other values the share of the ranks' variance that lies between them; scaled to a sum of 1.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from operant.report.search_table import TrialRow
from operant.report.stats import Floats

LEAST_TRIALS = 4
FANOVA, RANKS = "fANOVA", "rank correlation"


def importance(rows: Sequence[TrialRow]) -> tuple[dict[str, float], str]:
    """The weight of each setting, the largest first, and how it was computed; empty with too few trials or with forks.

    Trials are compared at what they last scored, whatever their rung.
    """
    if any(row.parent is not None for row in rows):
        return {}, "of a population there is none: the score of a fork is also its ancestors'"
    known = [row for row in rows if row.score is not None]
    scores = np.array([row.score.point for row in known if row.score is not None])
    if len(known) < LEAST_TRIALS or np.ptp(scores) == 0:
        return {}, "needs four trials whose scores differ"
    paths = list(known[0].settings)
    columns = {path: [row.settings[path] for row in known] for path in paths}
    has_forest = find_spec("sklearn") is not None and find_spec("optuna") is not None
    weights = _fanova(columns, scores) if has_forest else _rank_correlation(columns, scores)
    ordered = dict(sorted(weights.items(), key=lambda item: -item[1]))
    return ordered, FANOVA if has_forest else RANKS


def _fanova(columns: dict[str, list[Any]], scores: Floats) -> dict[str, float]:
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    varied = {path: values for path, values in columns.items() if len({_text(value) for value in values}) > 1}
    kinds = {
        path: FloatDistribution(min(values), max(values))
        if _are_numbers(values)
        else CategoricalDistribution(sorted({_text(value) for value in values}))
        for path, values in varied.items()
    }
    study = optuna.create_study(direction="maximize")
    for number, score in enumerate(scores):
        values = {
            path: float(column[number]) if _are_numbers(column) else _text(column[number])
            for path, column in varied.items()
        }
        study.add_trial(optuna.trial.create_trial(value=float(score), params=values, distributions=dict(kinds)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {path: float(found.get(path, 0.0)) for path in columns}


def _rank_correlation(columns: dict[str, list[Any]], scores: Floats) -> dict[str, float]:
    ranks = _ranks(scores)
    found = {
        path: _spearman(np.array(values, dtype=float), ranks) if _are_numbers(values) else _between(values, ranks)
        for path, values in columns.items()
    }
    total = sum(found.values())
    return {path: weight / total if total else 0.0 for path, weight in found.items()}


def _spearman(values: Floats, ranks: Floats) -> float:
    own = _ranks(values)
    return 0.0 if np.ptp(own) == 0 else float(abs(np.corrcoef(own, ranks)[0, 1]))


def _between(values: list[Any], ranks: Floats) -> float:
    """The share of the variance of the ranks that lies between groups of equal values."""
    texts = np.array([_text(value) for value in values])
    means = np.array([ranks[texts == text].mean() for text in texts])
    return float(np.var(means) / np.var(ranks))


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, the mean of them for equals."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts + 1) / 2)[inverse]


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _text(value: Any) -> str:
    return json.dumps(value)
