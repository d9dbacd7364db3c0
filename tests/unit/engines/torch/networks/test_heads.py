"""Networks: shapes, initialisation that takes effect, and the quick forward pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch.networks.acting import forward_for_acting
from operant.engines.torch.networks.heads import ActorCritic, QNet
from operant.engines.torch.networks.twin_critics import TwinCritic
from operant.spec.settings.nets import MlpSpec

OBS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


@pytest.mark.parametrize("activation", ["tanh", "relu", "gelu", "selu", "sigmoid"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("layer_norm", [True, False])
def test_acting_forward_agrees_with_torch(activation, shared, layer_norm):
    net = ActorCritic(MlpSpec(activation=activation, shared=shared, layer_norm=layer_norm), 4, 2, discrete=True)
    expected = net(torch.from_numpy(OBS))[0].detach().numpy()
    np.testing.assert_allclose(forward_for_acting(net.policy_layers())(OBS), expected, rtol=1e-5, atol=1e-6)


def test_acting_forward_sees_weights_changed_in_place():
    net = ActorCritic(MlpSpec(), 4, 2, discrete=True)
    forward = forward_for_acting(net.policy_layers())
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.1)
    np.testing.assert_allclose(forward(OBS), net(torch.from_numpy(OBS))[0].detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer_norm", [True, False])
def test_stacked_critics_are_two_perceptrons_side_by_side(layer_norm):
    critics = TwinCritic(MlpSpec(hidden=(8, 6), activation="relu", layer_norm=layer_norm), 4, 3)
    with torch.no_grad():
        for parameter in critics.parameters():
            parameter.add_(torch.randn_like(parameter))
    x = torch.from_numpy(OBS)
    for k in range(2):
        expected = x
        for layer in range(3):
            expected = expected @ critics.weights[layer][k] + critics.biases[layer][k]
            if layer_norm and layer < 2:
                scale, shift = critics.scales[layer][k, 0], critics.shifts[layer][k, 0]
                expected = torch.nn.functional.layer_norm(expected, expected.shape[-1:], scale, shift)
            expected = expected.relu() if layer < 2 else expected
        torch.testing.assert_close(critics(x)[k], expected)
        torch.testing.assert_close(critics.forward_frozen(x, critics=k + 1)[k], expected)
    assert not critics.forward_frozen(x).requires_grad


def test_duelling_head_is_value_plus_centred_advantage():
    net = QNet(MlpSpec(duelling=True), 4, 3)
    features = net.trunk(torch.from_numpy(OBS))
    assert net.state_value is not None
    value, advantage = net.state_value(features), net.advantage(features)
    expected = value + advantage - advantage.mean(-1, keepdim=True)
    torch.testing.assert_close(net(torch.from_numpy(OBS)), expected)
    greedy = forward_for_acting(net.greedy_layers())(OBS).argmax(-1)
    assert greedy.tolist() == net(torch.from_numpy(OBS)).argmax(-1).tolist()


def test_initial_policy_is_nearly_uniform_and_hidden_layers_are_orthogonal():
    net = ActorCritic(MlpSpec(hidden=(32, 32)), 4, 2, discrete=True)
    assert net(torch.from_numpy(OBS))[0].abs().max() < 0.1
    weight = dict(net.named_parameters())["actor.2.weight"]
    torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(32), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("init", ["xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "torch"])
def test_other_initialisations_differ_from_orthogonal(init):
    torch.manual_seed(0)
    net = QNet(MlpSpec(init=init, hidden=(32, 32)), 4, 2)
    found = dict(net.named_parameters())
    weight = found["trunk.2.weight"]
    assert not torch.allclose(weight @ weight.T, 2 * torch.eye(32), atol=1e-2)
    assert bool((found["trunk.2.bias"] == 0).all()) == (init != "torch")


@pytest.mark.parametrize("init", ["orthogonal", "xavier_uniform", "xavier_normal"])
def test_the_gains_scale_the_heads(init):
    def heads(**gains):
        torch.manual_seed(0)
        net = ActorCritic(MlpSpec(init=init, hidden=(8,), **gains), 4, 2, discrete=True)
        found = dict(net.named_parameters())
        return found["actor.2.weight"], found["critic.2.weight"]

    actor, critic = heads()
    louder_actor, louder_critic = heads(actor_gain=0.05, critic_gain=3.0)
    torch.testing.assert_close(louder_actor, 5 * actor)
    torch.testing.assert_close(louder_critic, 3 * critic)


def test_no_hidden_layers_is_a_linear_policy():
    net = ActorCritic(MlpSpec(hidden=()), 4, 2, discrete=False)
    assert net(torch.from_numpy(OBS))[0].shape == (6, 2)
    assert net.log_std is not None


def test_groups_split_actor_from_critic_and_miss_nothing():
    net = ActorCritic(MlpSpec(), 4, 2, discrete=False)
    actor, critic = net.parameter_groups()
    assert {id(p) for p in actor + critic} == {id(p) for p in net.parameters()}
    assert any(p is net.log_std for p in actor)
    assert {id(p) for p in critic} == {id(p) for p in net.critic.parameters()}
