"""The torch engine plays the grid hacking game by its masks."""

from __future__ import annotations

import pytest
import torch

from operant.engines.torch import validate
from operant.engines.torch.learners import build_learner
from operant.envs.hackmatrix.reference import Game, Outcome
from operant.run.seeding import Seeds
from operant.spec.load import load


def test_the_spec_trains_and_never_plays_an_illegal_action(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    outcomes: list[Outcome] = []
    step = Game.step
    monkeypatch.setattr(Game, "step", lambda game, action: outcomes.append(step(game, action)) or outcomes[-1])
    overrides = ["env.num_envs=2", "env.max_frame=512", "env.vectorization=serial", "agent.net.hidden=[32]"]
    spec = load("maskable_ppo_hackmatrix", overrides=overrides).spec
    validate(spec)
    learner = build_learner(spec, Seeds(0), torch.device("cpu"))
    while learner.tracker.frames < spec.env.max_frame:
        learner.iterate()
    assert len(outcomes) >= 512
    assert any(outcome.died for outcome in outcomes)
    assert not any(outcome.refused for outcome in outcomes)
