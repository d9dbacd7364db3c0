"""MLflow: a run for each session, on a server or in a local database.

MLflow never takes a value back: a key has one value at a step. After a resume from a checkpoint the values that it
holds past that stay, and the same steps are not logged again.
"""

from __future__ import annotations

import json
import time
from typing import Any

from operant.install import missing_package
from operant.trackers.tables import tables
from operant.trackers.tracker import Batch, Held, Tracker, video_key

MAX_METRICS = 1000
MAX_PARAMETER = 6000
ID_TAG = "operant.run_id"
STATUS = {"done": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}


class MlflowTracker(Tracker):
    """A run of MLflow."""

    def open(self, step: int, rewound: bool) -> Held:
        self._client = _client(self.settings.tracking_uri)
        experiment = self._experiment()
        self._id = self._find(experiment) or self._create(experiment)
        self._client.update_run(self._id, status="RUNNING")
        self.place = f"{self._client.tracking_uri} experiment {self.settings.experiment}, run {self.run_name}"
        return Held(self._held())

    def log(self, batch: Batch) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(key, float(value), now, batch.step) for key, value in batch.values.items()]
        # Tables first: a name is written over, a metric is not, and the metrics tell what is held.
        for key, table in tables(batch.episodes).items():
            rows = {"columns": table.columns, "data": table.rows}
            self._client.log_text(self._id, json.dumps(rows), f"{key}/{batch.step:012d}.json")
        for video in batch.videos:
            self._client.log_artifact(self._id, str(video), "media")
            metrics.append(Metric(video_key(video), 1.0, now, batch.step))
        for start in range(0, len(metrics), MAX_METRICS):
            self._client.log_batch(self._id, metrics=metrics[start : start + MAX_METRICS], synchronous=True)

    def close(self, state: str) -> None:
        if state in STATUS:
            self._client.set_terminated(self._id, STATUS[state])

    def _experiment(self) -> str:
        found = self._client.get_experiment_by_name(self.settings.experiment)
        return found.experiment_id if found else self._client.create_experiment(self.settings.experiment)

    def _find(self, experiment: str) -> str | None:
        found = self._client.search_runs([experiment], f"tags.`{ID_TAG}` = '{self.run_id}'", max_results=1)
        return found[0].info.run_id if found else None

    def _create(self, experiment: str) -> str:
        from mlflow.entities import Param

        own = dict(tag.partition("=")[::2] for tag in self.settings.tags)
        tags = {ID_TAG: self.run_id, "operant.experiment": self.experiment, **own}
        run = self._client.create_run(experiment, run_name=self.run_name, tags=tags).info.run_id
        spec = {**_flat(self.run.spec), "seed": self.run.seed}
        self._client.log_batch(run, params=[Param(key, str(value)[:MAX_PARAMETER]) for key, value in spec.items()])
        return run

    def _held(self) -> dict[str, int]:
        """The last step of each key."""
        keys = self._client.get_run(self._id).data.metrics
        return {key: max(each.step for each in self._client.get_metric_history(self._id, key)) for key in keys}


def _client(uri: str | None) -> Any:
    from mlflow import MlflowClient

    try:
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "sqlalchemy", "MLflow's local database") from missing
    return client


def _flat(spec: dict[str, Any], path: str = "") -> dict[str, Any]:
    """The settings of a spec by their paths."""
    flat: dict[str, Any] = {}
    for key, value in spec.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) and value else {f"{path}{key}": value}
    return flat
