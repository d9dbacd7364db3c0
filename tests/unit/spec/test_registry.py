"""Parts that are not built in: found by path, checked and stored as the built-in ones are."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from operant.errors import UsageError
from operant.spec.describe import describe, json_schema
from operant.spec.fork import changes
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import ALGORITHMS, BUILTIN
from operant.spec.settings.memories import MEMORIES
from operant.spec.settings.nets import NETS
from operant.spec.stored import stored

PARTS = '''\
import numpy as np
from operant.engines.torch.buffers.replay import Replay
from operant.spec.settings.algorithm import Algorithm
from operant.spec.settings.memories import Memory
from operant.spec.settings.nets import Net
from operant.spec.settings.ppo import PpoSpec
from operant.spec.settings.schedulers import SchedulerSpec


class Wider(PpoSpec):
    """PPO with one setting more, and the built-in learner."""

    pace: float = 1.0


class Nobody(Algorithm):
    """Nothing learns it."""


class Newest(Replay):
    """The last transitions, in the order in which they came."""

    def draw(self, rng, beta):
        return np.arange(self.filled - self._batch_size, self.filled), None


class NewestMemory(Memory):
    """The last transitions."""

    BUFFERS = {"torch": Newest}


class Doubled:
    """Features are the observation beside itself, scaled."""

    def init(self, net, rng, inputs):
        return [np.full(inputs, net.scale, np.float32)], 2 * inputs

    def apply(self, net, layers, x, dtype):
        import jax.numpy as jnp

        return jnp.concatenate([x, x * layers[0]], -1).astype(dtype)


class DoubledNet(Net):
    """For the compiled program alone."""

    LAYERS = {"jax": Doubled()}

    scale: float = 2.0


def halving(optimizer, every):
    from torch.optim.lr_scheduler import LambdaLR

    return LambdaLR(optimizer, lambda step: 0.5 ** (step // every))


class Halving(SchedulerSpec):
    """Half the rate after every so many updates."""

    SCHEDULER = "own_parts:halving"

    every: int = 10
'''


@pytest.fixture(scope="module", autouse=True)
def own_parts(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("parts")
    (folder / "own_parts.py").write_text(PARTS, encoding="utf-8")
    sys.path.append(str(folder))
    yield
    sys.path.remove(str(folder))
    sys.modules.pop("own_parts", None)


def spec_of(**agent: Any) -> Spec:
    return Spec.model_validate({"env": {"max_frame": 2048}, "agent": agent})


def test_a_path_stands_in_the_spec_and_survives_storing():
    spec = spec_of(algorithm={"name": "own_parts:Wider", "pace": 2})
    assert isinstance(spec.agent.algorithm, BUILTIN["ppo"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = spec.model_dump(mode="json")
    assert data["agent"]["algorithm"]["name"] == "own_parts:Wider"
    assert data["agent"]["algorithm"]["pace"] == 2.0
    assert stored(data) == spec
    assert ALGORITHMS["own_parts:Wider"] is type(spec.agent.algorithm)
    assert list(ALGORITHMS) == list(BUILTIN)


def test_the_name_of_the_base_is_not_taken_for_it():
    with pytest.raises(ValueError, match="literal_error"):
        ALGORITHMS["own_parts:Wider"].model_validate({"name": "ppo"})


def test_a_setting_without_a_mark_stays_as_it_is_in_a_fork():
    before, after = (spec_of(algorithm={"name": "own_parts:Wider", "pace": pace}) for pace in (1, 2))
    (change,) = changes(before, after)
    assert not change.allowed
    assert "does not mark it" in change.rule.why


def test_an_algorithm_without_a_learner_is_refused():
    with pytest.raises(UsageError, match="own_parts:Nobody names no learner"):
        ALGORITHMS.find("own_parts:Nobody")
    with pytest.raises(UsageError, match="own_parts:Nobody is the class Nobody"):
        NETS.find("own_parts:Nobody")
    assert MEMORIES.get("own_parts:Nothing") is None


def test_the_json_schema_takes_a_path_and_help_knows_it():
    data = {"agent": {"algorithm": {"name": "own_parts:Wider", "pace": 2}, "net": {"type": "own_parts:DoubledNet"}}}
    jsonschema.validate(data, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"agent": {"algorithm": {"name": "nobody"}}}, json_schema())
    assert describe(["own_parts:NewestMemory"]).title == "memory own_parts:NewestMemory"


def test_an_own_memory_and_scheduler_learn(tmp_path: Path):
    from operant.engines.torch.learners import build_learner, prepare_torch
    from operant.run.seeding import Seeds

    spec = spec_of(
        algorithm={"name": "dqn", "training_start": 64},
        memory={"name": "own_parts:NewestMemory", "batch_size": 16},
        net={"optimizer": {"lr": 0.01, "scheduler": {"name": "own_parts:Halving", "every": 5}}},
    )
    learner = build_learner(spec, Seeds(1), prepare_torch(spec, 1))
    for _ in range(40):
        learner.iterate()
    assert type(learner.storage.replay).__name__ == "Newest"  # pyright: ignore[reportAttributeAccessIssue]
    assert learner.tracker.updates > 10


def test_an_own_network_in_the_compiled_program():
    jax = pytest.importorskip("jax")
    from operant.engines.jax.compatibility import unsupported
    from operant.engines.jax.learners import build_learner

    for name in ("ppo", "dqn"):
        spec = spec_of(algorithm={"name": name}, net={"type": "own_parts:DoubledNet", "scale": 3.0})
        assert not list(unsupported(spec))
        weights = build_learner(spec).init_params(np.random.default_rng(0))
        layers = weights["actor"] if name == "ppo" else weights["trunk"]
        np.testing.assert_array_equal(layers[0], np.full(4, 3.0, np.float32))
        head = weights["actor"][-1] if name == "ppo" else weights["advantage"]
        assert head["weight"].shape == (8, 2)
        assert jax.tree.leaves(weights)
