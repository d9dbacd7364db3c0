"""How many environments suit a device."""

from __future__ import annotations

import pytest

from operant.errors import UsageError
from operant.spec.load import load

pytest.importorskip("jax")
from operant.engines.jax import tuning
from operant.run.expense import Estimate

RATES = {64: 1000.0, 128: 1900.0, 256: 3000.0, 512: 3100.0, 1024: 9000.0}


def rated(spec):
    return Estimate(0, [], 0, RATES[spec.env.num_envs], 0.0, 0)


def test_doubling_goes_on_while_it_is_worth_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tuning, "measure", rated)
    tried = list(tuning.tune(load("ppo_hackmatrix").spec))
    assert [each.num_envs for each in tried] == [64, 128, 256, 512]
    assert tried[-1].overrides == ("env.num_envs=512", f"agent.algorithm.minibatch_size={512 * 128 // 4}")


def test_a_full_device_ends_it(monkeypatch: pytest.MonkeyPatch):
    def full(spec):
        if spec.env.num_envs > 128:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return rated(spec)

    monkeypatch.setattr(tuning, "measure", full)
    assert [each.num_envs for each in tuning.tune(load("ppo_hackmatrix").spec)] == [64, 128]


def test_another_fault_is_not_swallowed(monkeypatch: pytest.MonkeyPatch):
    def broken(spec):
        raise RuntimeError("INTERNAL: broken")

    monkeypatch.setattr(tuning, "measure", broken)
    with pytest.raises(RuntimeError, match="INTERNAL"):
        list(tuning.tune(load("ppo_hackmatrix").spec))


def test_only_ppo_is_tuned():
    with pytest.raises(UsageError, match="tuning is for PPO"):
        list(tuning.tune(load("dqn_cartpole_jax").spec))


def test_the_changed_spec_is_checked_again():
    spec = tuning.changed(load("ppo_hackmatrix").spec, {"env.num_envs": 64})
    assert spec.env.num_envs == 64
