"""How environments are stepped is no part of the result: a run may go on under another way."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.run.run import Run
from operant.spec.schema import Spec
from tests.contract.conftest import create, differing, finish

SPEC = {
    "name": "ways",
    "env": {"name": "CartPole-v1", "num_envs": 4, "max_frame": 6000},
    "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": {"hidden": [32, 32]}},
    "meta": {"save_frequency": 1500, "log_frequency": 500, "eval_episodes": 2, "final_episodes": 2},
}


def spec_for(way: str) -> Spec:
    return Spec.model_validate({**SPEC, "env": {**SPEC["env"], "vectorization": way}})


def run_under(path: Path, first: str, then: str) -> Run:
    """Half of the run one way, half the other."""
    run = create(path, spec_for(first))
    finish(run, "--until", "3000")
    assert run.document["vectorization"].partition(" ")[0] == first
    run.record(spec=spec_for(then).model_dump(mode="json"))
    assert finish(run) == 0
    assert run.document["vectorization"].partition(" ")[0] == then
    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = create(tmp_path_factory.mktemp("ways") / "whole", spec_for("serial"))
    assert finish(run) == 0
    return run


@pytest.mark.parametrize(("first", "then"), [("processes", "serial"), ("serial", "processes")])
@pytest.mark.slow
def test_a_run_goes_on_under_another_way_of_stepping(first: str, then: str, whole: Run, tmp_path: Path):
    assert differing(run_under(tmp_path / "mixed", first, then), whole) is None
