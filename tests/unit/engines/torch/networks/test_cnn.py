"""Networks on images: layouts, sizes, scale, initialisation, and refusals before work starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from operant.engines.torch import validate
from operant.engines.torch.networks.acting import forward_for_acting
from operant.engines.torch.networks.cnn import BLOCK, FirstConvolution, Pixels, gathered, laid_out
from operant.engines.torch.networks.heads import ActorCritic, QNet
from operant.engines.torch.on_policy import collect
from operant.engines.torch.optimizer import FlatOptimizer
from operant.engines.torch.ppo import Ppo
from operant.engines.torch.reinforce import Reinforce
from operant.envs.images import feature_map, image_of
from operant.errors import UsageError
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import ImpalaSpec, MlpSpec, NatureCnnSpec, Net, OptimizerSpec

SMALL = NatureCnnSpec(conv=((4, 3, 2), (8, 3, 1)), hidden=(16,))


@pytest.mark.parametrize(
    ("shape", "size"),
    [((4, 84, 84), (4, 84, 84)), ((96, 80, 3), (3, 96, 80)), ((10, 12), (1, 10, 12)), ((2, 96, 80, 3), (6, 96, 80))],
)
def test_pixels_come_channels_first_in_whatever_order_they_were(shape, size):
    image = image_of(shape)
    assert image is not None
    assert (image.channels, image.height, image.width) == size
    obs = torch.randint(0, 256, (5, *shape), dtype=torch.uint8)
    seen = Pixels(image)(obs)
    assert seen.shape == (5, *size)
    assert seen.dtype == torch.float32
    assert seen.is_contiguous(memory_format=torch.channels_last)
    assert seen.sum().item() == pytest.approx(obs.sum().item(), rel=1e-5)


def test_channels_of_a_colour_stack_are_frames_then_colours():
    obs = torch.randint(0, 256, (1, 2, 8, 9, 3), dtype=torch.uint8)
    image = image_of((2, 8, 9, 3))
    assert image is not None
    assert torch.equal(Pixels(image)(obs)[0, 4].to(torch.uint8), obs[0, 1, :, :, 1])


@pytest.mark.parametrize("spec", [SMALL, ImpalaSpec(channels=(4,), hidden=(16,))])
def test_blocks_of_scaled_bytes_learn_what_one_batch_of_fractions_would(spec: Net):
    torch.manual_seed(0)
    net = QNet(spec, (4, 12, 12), 3)
    obs = torch.randint(0, 256, (2 * BLOCK + 5, 4, 12, 12), dtype=torch.uint8)
    plain = nn.Sequential(*(_plain(layer) for layer in list(net.trunk)[1:]), net.advantage)
    results = []
    for output in (net(obs), plain(obs / 255)):
        net.zero_grad()
        output.square().mean().backward()
        results.append((output, [p.grad.clone() for p in net.parameters() if p.grad is not None]))
    (blocked, slopes), (whole, expected) = results
    torch.testing.assert_close(blocked, whole)
    torch.testing.assert_close(slopes, expected, rtol=1e-4, atol=1e-6)


def _plain(layer: nn.Module) -> nn.Module:
    """The same layer, as torch's own convolution where it is one of bytes; it shares the weights."""
    if not isinstance(layer, FirstConvolution):
        return layer
    conv = nn.Conv2d(4, 4, layer.kernel_size, layer.stride, layer.padding)  # type: ignore[arg-type]
    conv.weight, conv.bias = layer.weight, layer.bias
    return conv


def test_a_vector_is_no_image():
    assert image_of((17,)) is None


def test_nature_sizes_are_those_of_the_paper():
    image = image_of((4, 84, 84))
    assert image is not None
    assert feature_map(NatureCnnSpec(), image) == (64, 7, 7)
    net = QNet(NatureCnnSpec(), (4, 84, 84), 6)
    assert sum(p.numel() for p in net.parameters()) == 1_687_206


def test_impala_widens():
    image = image_of((4, 84, 84))
    assert image is not None
    assert feature_map(ImpalaSpec(width=2), image) == (64, 11, 11)
    assert QNet(ImpalaSpec(width=2), (4, 84, 84), 6)(torch.zeros(2, 4, 84, 84, dtype=torch.uint8)).shape == (2, 6)


@pytest.mark.parametrize("spec", [SMALL, ImpalaSpec(channels=(4,), hidden=(16,)), MlpSpec()])
@pytest.mark.parametrize("shared", [True, False])
def test_every_net_reads_images_and_acts_as_it_learns(spec: Net, shared: bool):
    net = ActorCritic(spec.model_copy(update={"shared": shared}), (4, 12, 12), 3, discrete=True)
    obs = np.random.default_rng(0).integers(0, 256, (5, 4, 12, 12), dtype=np.uint8)
    output, value = net(torch.from_numpy(obs))
    assert value.shape == (5,)
    np.testing.assert_allclose(forward_for_acting(net.policy_layers())(obs), output.detach().numpy(), atol=1e-5)


def test_orthogonal_initialisation_takes_effect():
    net = QNet(SMALL, (4, 12, 12), 3)
    conv = next(layer for layer in net.trunk if isinstance(layer, nn.Conv2d))
    flat = conv.weight.detach().reshape(4, -1)
    np.testing.assert_allclose(flat @ flat.T, 2 * np.eye(4), atol=1e-5)
    assert conv.bias is not None
    assert not conv.bias.detach().any()


def test_the_optimiser_keeps_channels_last_and_steps_every_weight():
    net = QNet(SMALL, (4, 12, 12), 3)
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    optimizer = FlatOptimizer(OptimizerSpec(lr=0.1), [list(net.parameters())], [0.1])
    assert all(torch.equal(p, before[name]) for name, p in net.named_parameters())
    conv = next(layer for layer in net.trunk if isinstance(layer, nn.Conv2d))
    assert conv.weight.is_contiguous(memory_format=torch.channels_last)
    optimizer.step(net(torch.randint(0, 256, (8, 4, 12, 12), dtype=torch.uint8)).square().mean())
    assert all(not torch.equal(p, before[name]) for name, p in net.named_parameters())


def test_laying_out_changes_no_value():
    obs = torch.randint(0, 256, (3, 4, 12, 12), dtype=torch.uint8)
    assert torch.equal(laid_out(obs), obs)
    assert laid_out(obs)[torch.tensor([2, 0])].is_contiguous(memory_format=torch.channels_last)
    vectors = torch.zeros(3, 7)
    assert laid_out(vectors) is vectors


@pytest.mark.parametrize("shape", [(4, 12, 12), (12, 12, 3), (2, 12, 12, 3)])
def test_gathering_takes_the_rows_and_keeps_their_layout(shape):
    obs = laid_out(torch.randint(0, 256, (5, *shape), dtype=torch.uint8))
    index = torch.tensor([3, 0, 3])
    assert torch.equal(gathered(obs, index), obs[index])
    assert gathered(obs, index).stride() == obs.stride()
    assert torch.equal(gathered(obs[:, 1:], index), obs[:, 1:][index])


@pytest.mark.parametrize("shared", [True, False])
def test_acting_tells_the_outputs_and_values_that_learning_would(shared: bool):
    net = ActorCritic(SMALL.model_copy(update={"shared": shared}), (4, 12, 12), 3, discrete=True)
    obs = np.random.default_rng(0).integers(0, 256, (5, 4, 12, 12), dtype=np.uint8)
    for mine, learnt in zip(net.policy_and_value()(obs), net(torch.from_numpy(obs)), strict=True):
        np.testing.assert_allclose(mine, learnt.detach().numpy(), atol=1e-5)


def image_learner(**meta: Any) -> Ppo:
    algorithm = {"name": "ppo", "time_horizon": 8, "minibatch_size": 16, "training_epoch": 1}
    net = {"type": "nature_cnn", "conv": [[4, 4, 4]], "hidden": [16]}
    env = {"name": "operant/ProbeBoth-v0", "kwargs": {"pixels": True}, "num_envs": 4, "max_frame": 320}
    spec = Spec.model_validate({"meta": meta, "env": env, "agent": {"algorithm": algorithm, "net": net}})
    return Ppo(spec, Seeds(0), torch.device("cpu"))


def test_samples_of_images_are_those_of_a_second_pass():
    learner = image_learner()
    played = (learner.vector, learner.actor, learner.rewards, learner.rng_act, learner.horizon)
    rollout = collect(*played, learner.forward_acting)
    assert rollout.outputs is not None
    quick, plain = learner.samples(rollout), learner.samples(replace(rollout, outputs=None))
    for name in ("logp", "value", "advantage", "target"):
        torch.testing.assert_close(getattr(quick, name), getattr(plain, name), atol=1e-5, rtol=1e-5)


def test_bfloat16_rollouts_are_evaluated_by_the_arithmetic_that_learns():
    assert image_learner(precision="bfloat16").forward_acting is None


def refusal(env: dict[str, Any], net: dict[str, Any], algorithm: str = "ppo") -> str:
    with pytest.raises(UsageError) as refused:
        validate(Spec.model_validate({"env": env, "agent": {"net": net, "algorithm": {"name": algorithm}}}))
    return str(refused.value)


def test_convolutions_on_a_vector_are_refused():
    text = refusal({"name": "CartPole-v1"}, {"type": "nature_cnn"})
    assert "nature_cnn reads images, but CartPole-v1 gives vectors of 4 numbers" in text
    assert "-s agent.net.type=mlp" in text


def test_a_picture_too_small_for_the_kernels_is_refused():
    picture = {"name": "operant/ProbeBoth-v0", "kwargs": {"pixels": True}}
    assert "12 x 12, are too small" in refusal(picture, {"type": "nature_cnn"})


def test_continuous_sac_on_images_is_refused():
    picture = {"name": "operant/ProbeBoth-v0", "kwargs": {"pixels": True, "continuous": True}}
    net = {"type": "nature_cnn", "conv": [[4, 4, 4]]}
    assert "sac reads images only where actions are discrete" in refusal(picture, net, "sac")


def test_whole_episodes_of_atari_are_learnt_from():
    pytest.importorskip("ale_py", reason="ale-py is not installed: scripts/uv sync --inexact --extra deep")
    agent = {"net": {"type": "nature_cnn"}, "algorithm": {"name": "reinforce", "training_frequency": 2}}
    env = {"name": "ALE/Pong-v5", "num_envs": 2, "max_t": 20}
    spec = Spec.model_validate({"env": env, "agent": agent})
    validate(spec)
    learner = Reinforce(spec, Seeds(0), torch.device("cpu"))
    assert [over.length for over in learner.iterate()] == [20, 20]
    learner.vector.close()
