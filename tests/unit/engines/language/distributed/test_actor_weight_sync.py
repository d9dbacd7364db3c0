"""Weight syncs to generator actors, which are called here without Ray; what they are sent is pickled all the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.distributed import replicas
from operant.engines.language.distributed.ray_actors import GeneratorWorker
from operant.engines.language.distributed.replicas import ActorGenerator, Replicas, WeightStore
from operant.engines.language.distributed.weight_sync import SerializedWeights, trained_weights
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.errors import RunError
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from tests.unit.engines.language.conftest import graded, spec_of


class Handle:
    """An actor in this process."""

    def __init__(self, name: str, worker: GeneratorWorker) -> None:
        self.name, self.worker = name, worker
        self.beat: Callable[[], object] = lambda: None
        self.prepare: Callable[[Any], object] = lambda actor: None

    def call(self, method: str, *arguments: Any, lost: Callable[[], object] = lambda: None) -> Any:
        return pickle.loads(pickle.dumps(getattr(self.worker, method)(*pickle.loads(pickle.dumps(arguments)))))

    def close(self) -> None:
        self.worker.generator.close()


def in_step(context: TrainingContext) -> float:
    """Learn a round, hand the weights over, and return how far both sides are apart."""
    report = context.learner.learn(graded(context.gather()), Progress(), 1000)
    context.tracker.updates += report.steps
    return context.publish()["mismatch/probe_kl"]


@pytest.mark.parametrize("lora", [None, {"rank": 4}])
def test_replicas_are_checked_one_by_one(lora: dict[str, int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, told = spec_of({"zero_variance": "keep", "top_p": 0.9}, lora=lora), list[str]()
    telemetry = Telemetry(tell=lambda _, message: told.append(message))
    serialize = replicas.serialize
    with build_context(spec, Seeds(3), telemetry=telemetry) as context:
        handles: list[Any] = [
            Handle(f"generator {number}", GeneratorWorker(spec.model_dump(mode="json"), 3, 1, "cpu"))
            for number in (0, 1)
        ]
        store = WeightStore(lambda weights: weights)
        context.worker.generator = Replicas([ActorGenerator(handle, store) for handle in handles], context.policy)
        stale = {name: value.clone() for name, value in trained_weights(context.policy).items()}
        context.publish()
        assert max(in_step(context) for _ in range(2)) < 1e-10
        assert told == []

        def old_weights(_: Any, version: int) -> SerializedWeights:
            return serialize(stale, version)

        def flipped(weights: Any, version: int) -> SerializedWeights:
            data = bytearray(serialize(weights, version).data)
            data[-4] ^= 1
            return SerializedWeights(bytes(data), version)

        for fault, words in ((old_weights, "generator 0 has another fingerprint"), (flipped, "did not arrive whole")):
            monkeypatch.setattr(replicas, "serialize", fault)
            with pytest.raises(RunError, match=f"sent twice: .*{words}"):
                context.publish()
        monkeypatch.setattr(replicas, "serialize", serialize)
        handles[1].worker.generator.load = lambda *_: None
        with pytest.raises(RunError):
            in_step(context)
