"""A checkpoint's policy as a function of numpy arrays, and as a list of layers to export."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from operant.engines.torch.actor import Actor
from operant.engines.torch.learners import load_actor_and_net
from operant.engines.torch.networks.cnn import FirstConvolution, Pixels, Residual
from operant.engines.torch.networks.heads import ActorCritic, PolicyNet, QNet, QuantileNet
from operant.engines.torch.networks.layers import ACTIVATIONS, Flat
from operant.engines.torch.networks.recurrent import Core, RecurrentActorCritic
from operant.engines.torch.normalize import EPSILON
from operant.engines.torch.policies import NoisyTanh, TanhGaussian
from operant.envs.gym import make_env
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.envs.vector.base import observation_form
from operant.errors import UsageError
from operant.policy.array_policy import ArrayPolicy, Recording
from operant.policy.network import Network, box_head, discrete_head
from operant.policy.reader import Layer
from operant.spec.schema import Spec

ACTIVATION_OPS = {kind: name for name, kind in ACTIVATIONS.items()}


class TrainedPolicy(ArrayPolicy):
    """The policy of a checkpoint of this engine."""

    def __init__(self, spec: Spec, checkpoint: Path, device: str) -> None:
        self._spec = spec
        self._actor, self._net = load_actor_and_net(spec, checkpoint, torch.device(device))
        env = make_env(spec.env)
        self._flattened = env.env.observation_space if isinstance(env, gym.wrappers.FlattenObservation) else None
        self.obs_shape, self.obs_dtype = observation_form(env.observation_space)
        self._actions = ActionMap(env.action_space)
        env.close()
        self.recurrent = self._actor.hidden_state is not None
        super().__init__()

    def seed(self, seed: int) -> None:
        self._greedy, self._sampled = (self._actor.player(seed, greedy) for greedy in (True, False))

    def outputs(self, obs: np.ndarray, begun: np.ndarray) -> np.ndarray:
        return self._actor.outputs(obs, begun)

    def record(self, steps: int, num: int, seed: int) -> Recording:
        vector = AutoresetVectorEnv(self._spec.env, num, lambda i, k: seed + i + k * num, brief=True)
        act = self._actor.player(seed, greedy=False)
        obs, begun, mask = [], [], []
        for _ in range(steps):
            obs.append(vector.obs.copy())
            begun.append(vector.begun.copy())
            mask.append(vector.mask)
            vector.step(act(vector.obs, vector.mask, vector.begun))
        vector.close()
        self.reset()  # its hidden states are those of these environments now
        return Recording(np.stack(obs), np.stack(begun), None if mask[0] is None else np.stack(mask))

    def network(self) -> Network:
        actions = self._actions
        return Network(
            self.obs_shape,
            self.obs_dtype.name,
            [*_normalization(self._actor), *net_layers(self._net)],
            _head(self._actor, actions),
            actions.env_shape,
            np.dtype(actions.log_dtype).name,
            masked=self.record(1, 1, 0).mask is not None,
        )

    def _act(self, obs: np.ndarray, deterministic: bool, mask: np.ndarray | None, begun: np.ndarray) -> Any:
        play = self._greedy if deterministic else self._sampled
        return self._actions.to_env(play(obs, mask, begun))

    def _array(self, obs: Any) -> np.ndarray:
        """As it is, or flattened as in training where the environment's own observations are no arrays of one type."""
        if self._flattened is not None and self._flattened.contains(obs):
            return np.asarray(gym.spaces.flatten(self._flattened, obs), self.obs_dtype)
        return super()._array(obs)


def _normalization(actor: Actor) -> list[Layer]:
    normalizer = actor.obs_normalizer
    if normalizer.moments is None:
        return []
    mean, deviation = normalizer.moments.mean, np.sqrt(normalizer.moments.variance + EPSILON)
    return [{"op": "normalize", "mean": mean, "std": deviation, "clip": float(normalizer.clip)}]


def _head(actor: Actor, actions: ActionMap) -> list[Layer]:
    if actions.discrete:
        return discrete_head(actions.start)
    tanh: list[Layer] = []
    if isinstance(actor.policy, TanhGaussian):
        tanh = [{"op": "first", "count": actions.size}, {"op": "tanh"}]
    elif isinstance(actor.policy, NoisyTanh):
        tanh = [{"op": "tanh"}]
    return [*tanh, *box_head(actions.bounded, actions.half, actions.middle)]


def net_layers(net: nn.Module) -> list[Layer]:
    """The layers from normalized observations to the output that actions are chosen by."""
    if isinstance(net, RecurrentActorCritic):
        stream = net.actor
        return [*_layers(stream.trunk), *_cells(stream.core), *_layers([stream.heads[0]])]
    if isinstance(net, ActorCritic):
        return _layers(net.policy_layers())
    if isinstance(net, PolicyNet):
        return _layers(net.layers)
    if isinstance(net, QuantileNet):
        return [*_layers(net.greedy_layers()), {"op": "mean_of_groups", "groups": net.actions}]
    if isinstance(net, QNet):
        return _layers(net.greedy_layers())
    if isinstance(net, nn.Sequential):
        return _layers(net)
    raise UsageError(f"a network of type {type(net).__name__} cannot be exported", remedy="session.policy() plays it")


def _layers(modules: Iterable[nn.Module]) -> list[Layer]:
    return [layer for module in modules for layer in _layer(module)]


def _layer(module: nn.Module) -> list[Layer]:
    if type(module) in ACTIVATION_OPS:
        return [{"op": ACTIVATION_OPS[type(module)]}]
    if isinstance(module, nn.Linear):
        return [{"op": "dense", "weight": _array(module.weight).T, "bias": _array(module.bias)}]
    if isinstance(module, nn.LayerNorm):
        return [{"op": "layer_norm", "scale": _array(module.weight), "shift": _array(module.bias), "eps": module.eps}]
    if isinstance(module, nn.Conv2d):
        # The first convolution scales its weights rather than the bytes that it reads.
        weight = _array(module.weight * (1 / 255) if isinstance(module, FirstConvolution) else module.weight)
        form = {"stride": int(module.stride[0]), "padding": int(module.padding[0])}
        return [{"op": "conv", "weight": weight, "bias": _array(module.bias), **form}]
    if isinstance(module, nn.MaxPool2d):
        return [{"op": "max_pool", "kernel": module.kernel_size, "stride": module.stride, "padding": module.padding}]
    if isinstance(module, Pixels):
        return [{"op": "image", "axes": list(module.axes), "size": list(module.size)}]
    if isinstance(module, Residual):
        inner = (module.activation, module.first, module.activation, module.second)
        return [{"op": "residual", "layers": _layers(inner)}]
    if isinstance(module, Flat | nn.Flatten):
        return [{"op": "flatten"}]
    raise UsageError(f"a layer of type {type(module).__name__} cannot be exported", remedy="session.policy() plays it")


def _cells(core: Core) -> list[Layer]:
    """The recurrent layers; hidden states are laid out [h or c, layer, unit]."""
    parameters = [_array(parameter) for parameter in core.cells.parameters()]
    parts, depth, units = core.shape
    layers: list[Layer] = []
    for k in range(depth):
        weight, recurrent, bias, recurrent_bias = parameters[4 * k : 4 * k + 4]
        arrays = {"input": weight.T, "recurrent": recurrent.T, "input_bias": bias, "recurrent_bias": recurrent_bias}
        places = {"units": units, "hidden": k * units, **({"cell": (depth + k) * units} if parts == 2 else {})}
        layers.append({"op": "lstm" if parts == 2 else "gru", **places, **arrays})
    return layers


def _array(tensor: torch.Tensor | None) -> np.ndarray:
    assert tensor is not None, "every layer here has weights and a bias"
    return tensor.detach().cpu().numpy()
