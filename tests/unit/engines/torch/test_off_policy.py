"""When gradient steps come: with the step that reaches the next multiple of `training_frequency` frames."""

from __future__ import annotations

import pytest
import torch

from operant.engines.torch.dqn import Dqn
from operant.engines.torch.off_policy import steps_to_round
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


def rounds_by_counting(frequency: int, num: int, steps: int) -> list[int]:
    """The frames after every step in which one of its frames, counted from 1, is a multiple of `frequency`."""
    return [
        (step + 1) * num
        for step in range(steps)
        if any(frame % frequency == 0 for frame in range(step * num + 1, (step + 1) * num + 1))
    ]


@pytest.mark.parametrize(("frequency", "num"), [(8, 4), (5, 4), (20, 16), (4, 4), (33, 16), (7, 1)])
def test_rounds_come_at_the_multiples_that_steps_reach(frequency: int, num: int):
    frames, found = 0, []
    while frames < 60 * num:
        frames += num * steps_to_round(frames, frequency, num)
        found.append(frames)
    assert [frame for frame in found if frame <= 60 * num] == rounds_by_counting(frequency, num, 60)


@pytest.mark.parametrize(("polyak", "moves"), [(0.0, False), (0.5, True)])
def test_a_target_net_with_polyak_0_stays_as_it_began(polyak: float, moves: bool):
    algorithm = {"name": "dqn", "training_start": 64, "training_frequency": 5, "polyak": polyak}
    spec = Spec.model_validate({"env": {"num_envs": 4}, "agent": {"algorithm": algorithm, "net": {"hidden": [8]}}})
    learner = Dqn(spec, Seeds(0), torch.device("cpu"))
    before = [parameter.clone() for parameter in learner.target.parameters()]
    while learner.tracker.updates < 5:
        learner.iterate()
    assert [not torch.equal(a, b) for a, b in zip(before, learner.target.parameters(), strict=True)] == [moves] * 4
