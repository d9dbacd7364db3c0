"""Narrow and compiled networks: what changes, what does not, and what is refused."""

from __future__ import annotations

import pytest
import torch

from operant.engines.torch.accelerate import check_machine
from operant.engines.torch.learners import build_learner
from operant.errors import UsageError
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.sections import MetaSpec


def learner(algorithm, env="CartPole-v1", activation="tanh", **meta):
    agent = {"algorithm": {"name": algorithm}, "net": {"hidden": [16, 16], "activation": activation}}
    spec = Spec.model_validate({"env": {"name": env, "num_envs": 2}, "agent": agent, "meta": meta})
    return build_learner(spec, Seeds(0), torch.device("cpu"))


def test_updates_are_narrow_and_their_results_wide():
    plain, narrow = learner("ppo"), learner("ppo", precision="bfloat16")
    obs = torch.linspace(-1, 1, 20).reshape(5, 4)
    found = [(*each.net(obs), each.net.value(obs)) for each in (plain, narrow)]  # pyright: ignore[reportCallIssue]
    for wide, close in zip(*found, strict=True):
        assert close.dtype == torch.float32
        assert not torch.equal(wide, close)
        torch.testing.assert_close(wide, close, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_acting_is_as_precise_as_ever(activation):
    plain = learner("sac", "Pendulum-v1", activation)
    narrow = learner("sac", "Pendulum-v1", activation, precision="bfloat16")
    obs = torch.linspace(-1, 1, 6).reshape(2, 3).numpy()
    assert plain.actor.greedy(obs).tolist() == narrow.actor.greedy(obs).tolist()


def test_compiling_needs_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(UsageError, match=r"meta\.compile: torch\.compile needs a C\+\+ compiler") as refused:
        check_machine(MetaSpec(compile=True))
    assert refused.value.remedy == "-s meta.compile=false, or install one and set CXX"
    check_machine(MetaSpec())
