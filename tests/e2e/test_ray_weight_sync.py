"""Weight syncs to Ray replicas: whole ones pass, and what is changed on the way is found before it writes a word."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

pytest.importorskip("transformers")

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.distributed import replicas
from operant.engines.language.distributed.weight_sync import SerializedWeights
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.errors import RunError
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from tests.unit.engines.language.conftest import graded, spec_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the package ray"),
]


def learn(context: TrainingContext) -> None:
    report = context.learner.learn(graded(context.gather()), Progress(), 1000)
    context.tracker.updates += report.steps


@pytest.mark.parametrize("lora", [None, {"rank": 4}])
def test_replicas_are_checked_at_every_hand_over(lora: dict[str, int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = spec_of({"zero_variance": "keep", "top_p": 0.9}, lora=lora).model_dump(mode="json")
    ray = {"cluster": "ray", "device": "cpu", "ray": {"generators": 2, "store_mb": 200}}
    told: list[str] = []
    telemetry = Telemetry(tell=lambda _, message: told.append(message))
    serialize, stale = replicas.serialize, list[Any]()

    def sends_old_weights(weights: Any, version: int) -> SerializedWeights:
        """A courier that puts a new label on the first parcel."""
        return serialize(stale[0], version)

    def sends_flipped_bytes(weights: Any, version: int) -> SerializedWeights:
        data = bytearray(serialize(weights, version).data)
        data[-4] ^= 1
        return SerializedWeights(bytes(data), version)

    with build_context(Spec.model_validate({**plain, "meta": ray}), Seeds(3), telemetry=telemetry) as context:
        stale.append({name: value.clone() for name, value in replicas.trained_weights(context.policy).items()})
        assert context.publish()["mismatch/probe_kl"] < 1e-10
        learn(context)
        assert context.publish()["mismatch/probe_kl"] < 1e-10
        assert told == []
        learn(context)
        for fault, words in (
            (sends_old_weights, "generator 0 has another fingerprint"),
            (sends_flipped_bytes, "whole"),
        ):
            monkeypatch.setattr(replicas, "serialize", fault)
            with pytest.raises(RunError, match=f"sent twice: .*{words}"):
                context.publish()
        monkeypatch.setattr(replicas, "serialize", serialize)
        assert context.publish()["mismatch/probe_kl"] < 1e-10
        assert len(told) == 2
