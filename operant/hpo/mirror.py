"""The search as a study of Optuna in the same database, for its dashboard and its plots. Nothing is decided from it.

A study of Optuna has one space, so a search whose space was changed has a second one, of the trials since. Each trial
is written by the worker that holds its job, and written again to no effect by one that takes the job over.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import asdict
from typing import Any

from operant.hpo.jobs import FORK, JobRow
from operant.hpo.sampling import holds, optuna_distribution, to_optuna
from operant.hpo.storage import unreachable, without_password
from operant.hpo.study import Study

TRIAL = "operant_trial"


def _name(study: Study) -> str:
    """The study's name with a mark of its space."""
    space = json.dumps(study.spec.search, sort_keys=True)
    return f"{study.name}-{hashlib.sha256(space.encode()).hexdigest()[:6]}"


class Mirror:
    """Writes trials into Optuna's tables."""

    def __init__(self, url: str, study: Study) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = study
        self._address = without_password(url)
        with unreachable(self._address), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._optuna = optuna.create_study(
                storage=url, study_name=_name(study), direction="maximize", load_if_exists=True
            )
        self._storage = self._optuna._storage

    def begin(self, row: JobRow) -> None:
        """Add the trial of a job that begins one."""
        from optuna.trial import TrialState, create_trial

        with unreachable(self._address):
            if row.settings is None or self._find(row.trial) is not None:
                return
            space = self._study.space
            if row.fork is not None:
                self._prune(row.fork.replaces)
                if not all(holds(each.distribution, row.settings[each.path]) for each in space):
                    return  # it has kept settings from before the space was changed
            trial = create_trial(
                state=TrialState.RUNNING,
                params={each.path: to_optuna(each.distribution, row.settings[each.path]) for each in space},
                distributions={each.path: optuna_distribution(each.distribution) for each in space},
                user_attrs={TRIAL: row.trial, "settings": row.settings, FORK: row.fork and asdict(row.fork)},
            )
            self._storage.create_new_trial(self._optuna._study_id, template_trial=trial)

    def finish(self, row: JobRow, scores: tuple[float, ...]) -> None:
        """Report the score at the job's rung, and with the last one the value of the trial."""
        from optuna.trial import TrialState

        with unreachable(self._address):
            trial = self._find(row.trial)
            if trial is None or trial.state.is_finished():
                return
            rungs = self._study.plan.rungs
            if not scores:
                self._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
                return
            score = sum(scores) / len(scores)
            self._storage.set_trial_intermediate_value(trial._trial_id, rungs[row.rung], score)
            if row.rung == len(rungs) - 1:
                self._storage.set_trial_state_values(trial._trial_id, TrialState.COMPLETE, [score])

    def _prune(self, trial: int) -> None:
        """Say that a trial was replaced."""
        from optuna.trial import TrialState

        found = self._find(trial)
        if found is not None and not found.state.is_finished():
            self._storage.set_trial_state_values(found._trial_id, TrialState.PRUNED)

    def _find(self, trial: int | None) -> Any:
        found = self._optuna.get_trials(deepcopy=False)
        return next((each for each in found if each.user_attrs.get(TRIAL) == trial), None)
