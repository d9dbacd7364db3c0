"""Recurrent PPO on the same rollout and weights, in the torch engine and in the jax one."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from operant.engines.jax import recurrent
from operant.engines.jax.learner import HostRollout, PolicyInput
from operant.engines.jax.learners import build_learner
from operant.engines.jax.ppo import Ppo
from operant.engines.torch.learners import build_learner as build_deep
from operant.engines.torch.networks.recurrent import RecurrentActorCritic, Stream
from operant.engines.torch.on_policy import Rollout, collect
from operant.engines.torch.ppo import Ppo as DeepPpo
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import GruSpec, ImpalaSpec, LstmSpec, NatureCnnSpec, Net
from tests.oracle.test_jax_images import SHAPE, linear, trunk_of

ENVS, STEPS = 4, 48
UPDATES: dict[str, dict[str, Any]] = {
    "gru": {
        "env": {"name": "operant/CartPoleNoVelocity-v1"},
        "net": {"type": "gru", "hidden": [16], "recurrent": 8, "optimizer": {"critic_lr": 1e-3}},
        "algorithm": {"critic_hidden": [12], "entropy_coef": 0.02},
    },
    "lstm-shared": {
        "env": {"name": "Pendulum-v1", "max_t": 20, "vectorization": "serial"},
        "net": {"type": "lstm", "hidden": [], "recurrent": 8, "layers": 2, "shared": True},
        "algorithm": {"clip_vloss": 0.3, "normalize_v_targets": True},
    },
}
NETS = {
    "gru": GruSpec(hidden=(7,), recurrent=5, layers=2),
    "lstm": LstmSpec(hidden=(7,), recurrent=5, shared=True),
    "nature": NatureCnnSpec(conv=((8, 8, 4), (16, 3, 2)), hidden=(32,), recurrent=6, cell="lstm", layers=2),
    "impala": ImpalaSpec(channels=(4, 8), hidden=(32,), recurrent=6, shared=False),
}


def spec_of(case: dict[str, Any], engine: str) -> Spec:
    sizes = {"name": "ppo", "time_horizon": STEPS, "minibatch_size": ENVS * STEPS, "training_epoch": 3}
    env = {"num_envs": ENVS, "max_frame": 10_000, **case["env"]}
    agent = {"algorithm": {**sizes, **case["algorithm"]}, "net": case["net"]}
    return Spec.model_validate({"engine": engine, "env": env, "agent": agent})


def stream_of(net: Net, stream: Stream) -> dict[str, Any]:
    is_image = isinstance(net, NatureCnnSpec | ImpalaSpec)
    trunk = [linear(m) for m in stream.trunk.modules() if isinstance(m, torch.nn.Linear)]
    arrays = [parameter.detach().numpy().T.copy() for parameter in stream.core.cells.parameters()]
    cells = [
        {"input": {"weight": w, "bias": b}, "recurrent": {"weight": u, "bias": c}}
        for w, u, b, c in zip(*(arrays[k::4] for k in range(4)), strict=True)
    ]
    return {"layers": trunk_of(net, stream.trunk) if is_image else trunk, "cells": cells}


def weights_of(net: Net, deep: RecurrentActorCritic) -> dict[str, Any]:
    streams = [stream_of(net, each) for each in deep.streams]
    heads = [linear(head) for each in deep.streams for head in each.heads]
    if net.shared:
        parts: dict[str, Any] = {"trunk": streams[0], "actor": {"head": heads[0]}, "critic": {"head": heads[1]}}
    else:
        actor, critic = ({**stream, "head": head} for stream, head in zip(streams, heads, strict=True))
        parts = {"actor": actor, "critic": critic}
    return parts if deep.log_std is None else {**parts, "log_std": deep.log_std.detach().numpy().copy()}


@pytest.mark.parametrize("name", NETS)
def test_outputs_and_hidden_states_of_sequences_agree(name: str):
    net, rng = NETS[name], np.random.default_rng(1)
    torch.manual_seed(0)
    shape = SHAPE if net.READS_IMAGES else (3,)
    deep = RecurrentActorCritic(net, shape, 2, True, net)
    obs = rng.integers(0, 256, (2, 9, *SHAPE)).astype(np.uint8)
    if not net.READS_IMAGES:
        obs = rng.normal(size=(2, 9, 3)).astype(np.float32)
    begun, hidden = rng.random((2, 9)) < 0.3, rng.normal(size=(2, recurrent.hidden_width(net))).astype(np.float32)
    params = weights_of(net, deep)
    given = (jnp.asarray(obs, jnp.float32), jnp.asarray(begun), jnp.asarray(hidden))
    output, value, states = jax.jit(partial(recurrent.forward, net))(params, *given)
    act = jax.jit(partial(recurrent.policy_output, net))
    expected = deep(*(torch.from_numpy(each) for each in (obs, begun, hidden)))
    np.testing.assert_allclose(output, expected[0].detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(value, expected[1].detach().numpy(), atol=1e-5)
    for step in range(9):
        acted, hidden = act(params, given[0][:, step], given[1][:, step], jnp.asarray(hidden))
        np.testing.assert_allclose(acted, output[:, step], atol=1e-5)
        width = hidden.shape[1] if net.shared else hidden.shape[1] // 2
        np.testing.assert_allclose(hidden[:, :width], states[:, step, :width], atol=1e-5)


def as_played(rollout: Rollout) -> HostRollout:
    """A rollout of the torch engine as the host would hand it to a compiled learner."""
    assert rollout.hidden is not None
    cut = [at for at in rollout.final_obs if rollout.truncated[at]]
    slots = int(rollout.truncated.sum(0).max())
    final = np.zeros((slots, *rollout.last_obs.shape), np.float32)
    for t, i in cut:
        final[rollout.truncated[:t, i].sum(), i] = rollout.final_obs[t, i]
    ends = (rollout.reward, rollout.terminated, rollout.truncated, rollout.hidden.begun)
    return HostRollout(rollout.obs, None, rollout.action, *ends, last=rollout.last_obs, final=final)


@pytest.mark.parametrize("name", ["gru", pytest.param("lstm-shared", marks=pytest.mark.slow)])
def test_one_recurrent_update_agrees(name: str):
    """The second rollout, which begins in the midst of episodes, and with the hidden states of the first."""
    deep = build_deep(spec_of(UPDATES[name], "torch"), Seeds(3), torch.device("cpu"))
    assert isinstance(deep, DeepPpo)
    assert isinstance(deep.net, RecurrentActorCritic)
    collect(deep.vector, deep.actor, deep.rewards, deep.rng_act, STEPS + 1)
    rollout = collect(deep.vector, deep.actor, deep.rewards, deep.rng_act, STEPS)
    assert rollout.hidden is not None
    assert rollout.hidden.start.any(), "or this test shows less than it should"
    assert rollout.hidden.begun[1:].any()
    deep.tracker.frames = ENVS * STEPS
    spec = spec_of(UPDATES[name], "jax")
    fused = build_learner(spec)
    assert isinstance(fused, Ppo)
    weights = weights_of(spec.agent.net, deep.net)
    state = fused.init(jax.random.key(0), weights, None)
    state = state._replace(rollout=state.rollout._replace(hidden=jnp.asarray(rollout.hidden.start)))
    played = as_played(rollout)
    after, found = jax.jit(fused.learn_on_host, static_argnums=3)(state, fused.hyper(spec), played, True)
    assert found is not None
    told = deep.update(rollout)
    expected = weights_of(spec.agent.net, deep.net)
    moved = jax.tree.map(lambda new, old: np.abs(new - old).max(), expected, weights)
    assert min(jax.tree.leaves(moved)) > 1e-5, "the update moves every layer, or this test shows nothing"
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), after.policy.params, expected)
    for metric in ("loss/policy", "loss/value", "policy/entropy", "optim/grad_norm"):
        assert float(found.means[metric]) == pytest.approx(told[metric], rel=1e-3, abs=1e-5)
    np.testing.assert_allclose(after.rollout.hidden, rollout.hidden.last, atol=1e-5)


def test_an_episode_that_begins_forgets_the_one_before():
    spec = spec_of(UPDATES["gru"], "jax")
    fused = build_learner(spec)
    policy = fused.init(jax.random.key(0), fused.init_params(np.random.default_rng(0)), None).policy
    seen = np.random.default_rng(1).normal(size=(2, *fused.env.observation_shape)).astype(np.float32)
    kept = jnp.ones_like(fused.init_hidden(2))
    first, _ = fused.outputs_and_hidden(policy, PolicyInput(seen, None, np.array([True, False]), kept))
    fresh, _ = fused.outputs_and_hidden(policy, PolicyInput(seen, None, np.array([False, False]), fused.init_hidden(2)))
    np.testing.assert_allclose(first[0], fresh[0], atol=1e-6)
    assert not np.allclose(first[1], fresh[1], atol=1e-6)
