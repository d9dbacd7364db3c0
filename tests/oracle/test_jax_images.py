"""Networks on images: the jax engine's features and gradients are those of the torch engine."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from operant.engines.jax import nets
from operant.engines.jax.convolutions import as_convolution, block_convolution
from operant.engines.jax.learners import build_learner
from operant.engines.jax.off_policy import RolloutState
from operant.engines.jax.replay import Transition
from operant.engines.torch.buffers.replay import Batch
from operant.engines.torch.learners import build_learner as build_deep
from operant.engines.torch.networks.cnn import Residual
from operant.engines.torch.networks.heads import ActorCritic
from operant.engines.torch.off_policy import Sample
from operant.engines.torch.sac import policy_step
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import ImpalaSpec, NatureCnnSpec, Net

SHAPE = (4, 36, 30)
NETS = {
    "nature": NatureCnnSpec(conv=((8, 8, 4), (16, 3, 2)), hidden=(32,), activation="relu"),
    "impala": ImpalaSpec(channels=(4, 8), hidden=(32,), activation="relu"),
}


@pytest.mark.parametrize(("kernel", "stride"), [(8, 4), (4, 2), (3, 1), (3, 2), (5, 3), (2, 4)])
def test_blocks_give_the_convolution_and_its_gradient(kernel: int, stride: int):
    rng = np.random.default_rng(0)
    x, weight = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((2, 19, 16, 3), (kernel, kernel, 3, 5)))

    def loss(weight: jax.Array, x: jax.Array, form: Any) -> Any:
        found = form(weight, x, stride)
        return jnp.sin(found).sum(), found

    differentiate = jax.jit(jax.grad(loss, (0, 1), has_aux=True), static_argnums=2)
    found, expected = (differentiate(weight, x, form) for form in (block_convolution, as_convolution))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), found, expected)


def linear(layer: Any) -> dict[str, np.ndarray]:
    return {"weight": layer.weight.detach().numpy().T.copy(), "bias": layer.bias.detach().numpy().copy()}


def convolution(layer: Any) -> dict[str, np.ndarray]:
    weight = layer.weight.detach().numpy().transpose(2, 3, 1, 0)
    return {"weight": weight.copy(), "bias": layer.bias.detach().numpy().copy()}


def trunk_of(net: Net, module: torch.nn.Module) -> list[Any]:
    """A torch trunk's layers as the jax engine keeps them: features there are in the order H, W, C."""
    residual = [each for each in module.modules() if isinstance(each, Residual)]
    inner = {id(part) for each in residual for part in (each.first, each.second)}
    first = [m for m in module.modules() if isinstance(m, torch.nn.Conv2d) and id(m) not in inner]
    layers: list[Any] = [convolution(each) for each in first]
    if residual:
        pairs = [[convolution(each.first), convolution(each.second)] for each in residual]
        layers = [{"first": conv, "residual": pairs[2 * k : 2 * k + 2]} for k, conv in enumerate(layers)]
    (hidden,) = [linear(m) for m in module.modules() if isinstance(m, torch.nn.Linear)]
    channels = first[-1].out_channels
    weight = hidden["weight"].reshape(channels, -1, hidden["weight"].shape[1]).transpose(1, 0, 2)
    return [*layers, {**hidden, "weight": weight.reshape(hidden["weight"].shape)}]


@pytest.mark.parametrize("name", ["nature", pytest.param("impala", marks=pytest.mark.slow)])
def test_outputs_and_gradients_agree(name: str):
    net = NETS[name]
    torch.manual_seed(0)
    deep = ActorCritic(net, SHAPE, 3, True, net)
    obs = np.random.default_rng(1).integers(0, 256, (6, *SHAPE)).astype(np.uint8)
    params = {
        "trunk": trunk_of(net, deep.trunk),
        "actor": [linear(m) for m in deep.actor.modules() if isinstance(m, torch.nn.Linear)],
        "critic": [linear(m) for m in deep.critic.modules() if isinstance(m, torch.nn.Linear)],
    }

    def loss(params: Any) -> Any:
        output, value = nets.forward(net, params, jnp.asarray(obs).astype(jnp.float32))
        return (output * jnp.arange(3)).sum() + jnp.square(value).sum(), (output, value)

    grads, (output, value) = jax.grad(loss, has_aux=True)(params)
    deep_output, deep_value = deep(torch.from_numpy(obs))
    ((deep_output * torch.arange(3)).sum() + deep_value.square().sum()).backward()
    np.testing.assert_allclose(output, deep_output.detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(value, deep_value.detach().numpy(), atol=1e-5)
    for module in deep.modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
            module.weight.data, module.bias.data = module.weight.grad, module.bias.grad  # pyright: ignore
    expected = trunk_of(net, deep.trunk)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), grads["trunk"], expected)


ROWS, ACTIONS = 6, 4


class GivenBatch:
    """In the place of a replay: whatever is drawn, it is this batch."""

    def __init__(self, batch: Transition) -> None:
        self._batch = batch

    def draw(self, buffer: None, bits: jax.Array) -> jax.Array:
        return bits

    def take(self, buffer: None, index: jax.Array) -> Transition:
        return jax.tree.map(lambda x: x[None], self._batch)


def learners(algorithm: dict[str, Any], **net: Any) -> tuple[Any, Any, Spec]:
    """Those of both engines for the same small screens of a game."""
    pytest.importorskip("ale_py")
    document = {
        "env": {"name": "ALE/Breakout-v5", "max_frame": 10_000, "kwargs": {"img_height": 36, "img_width": 30}},
        "agent": {
            "algorithm": {"training_start": 500, "training_iter": 1, **algorithm},
            "net": {"type": "nature_cnn", "conv": [[8, 8, 4], [16, 3, 2]], "hidden": [32], **net},
        },
    }
    deep, fused = (Spec.model_validate({"engine": engine, **document}) for engine in ("torch", "jax"))
    return build_deep(deep, Seeds(3), torch.device("cpu")), build_learner(fused), fused


def rows_of_images() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    seen = rng.integers(0, 256, (2, ROWS, *SHAPE)).astype(np.uint8)
    ends = {"reward": rng.normal(size=ROWS).astype(np.float32), "terminated": rng.random(ROWS) < 0.3}
    weight = rng.uniform(0.2, 1, ROWS).astype(np.float32)
    return {"obs": seen[0], "next_obs": seen[1], "action": rng.integers(ACTIONS, size=ROWS), "weight": weight, **ends}


def as_transition(rows: dict[str, np.ndarray]) -> Transition:
    names = ("obs", "action", "reward", "next_obs", "terminated", "weight")
    return Transition(*(jnp.asarray(rows[name]) for name in names))


def assert_close(found: Any, expected: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)


def after_update(fused: Any, spec: Spec, weights: Any) -> Any:
    """Weights of the policy and the learner's state after one update on the given batch."""
    state, key = fused.init(jax.random.key(0), weights, None), jax.random.key(1)
    fused.replay = GivenBatch(as_transition(rows_of_images()))
    steps = partial(fused.gradient_steps, rollout=RolloutState(None, None), number=jnp.int32(1), axis=None)
    return jax.jit(steps)(state.policy, state.learner, key=key, hyper=fused.hyper(spec))


def test_one_dqn_update_on_images_agrees():
    """Double and duelling, with the importance weights of prioritised replay."""
    deep, fused, spec = learners({"name": "dqn"}, duelling=True)

    def weights() -> dict[str, Any]:
        heads = {"advantage": linear(deep.net.advantage), "state": linear(deep.net.state_value)}
        return {"trunk": trunk_of(spec.agent.net, deep.net.trunk), **heads}

    before = weights()
    params, _, _, means = after_update(fused, spec, before)
    loss, q, norm = deep.gradient_step(Batch(index=np.arange(ROWS), **rows_of_images())).tolist()
    moved = jax.tree.map(lambda new, old: np.abs(new - old).max(), weights(), before)
    assert min(jax.tree.leaves(moved)) > 1e-5, "the update moves every layer, or this test shows nothing"
    assert_close(params, weights())
    found = [float(means[name]) for name in ("loss/q", "q/mean", "optim/grad_norm")]
    np.testing.assert_allclose(found, [loss, q, norm], rtol=1e-4)


@pytest.mark.slow
def test_one_sac_update_on_images_agrees():
    deep, fused, spec = learners({"name": "sac"})

    def network(module: Any, head: Any) -> list[Any]:
        return [*trunk_of(spec.agent.net, module), linear(head)]

    def weights() -> dict[str, Any]:
        pair = [network(critic.trunk, critic.advantage) for critic in deep.critic.pair]
        actor = [*deep.policy.modules()]
        head = [m for m in actor if isinstance(m, torch.nn.Linear)][-1]
        trunk = torch.nn.ModuleList(
            [m for m in actor if isinstance(m, torch.nn.Conv2d | torch.nn.Linear) and m is not head]
        )
        return {"actor": network(trunk, head), "critic": jax.tree.map(lambda *both: np.stack(both), *pair)}

    params, learner, _, _ = after_update(fused, spec, weights())
    rows = {name: torch.from_numpy(value) for name, value in rows_of_images().items()}
    sample, alpha = Sample(index=np.arange(ROWS), **rows), deep.temperature.value()
    noise = torch.zeros(ROWS, ACTIONS)
    deep.critic_step(sample, alpha, noise)
    _, logp = policy_step(deep, sample, alpha, noise)
    deep.temperature.update(logp)
    assert_close(params["actor"], weights()["actor"])
    assert_close(learner.critic, weights()["critic"])
    assert float(learner.log_alpha) == pytest.approx(deep.temperature.log_alpha.item(), abs=1e-6)
