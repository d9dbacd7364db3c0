"""A checkpoint's policy as a function of numpy arrays, and as a list of layers to export."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.engines.jax import distributions
from operant.engines.jax.dqn import Dqn
from operant.engines.jax.evaluation import load_policy
from operant.engines.jax.host.env import HostSpaces
from operant.engines.jax.learner import GREEDY, SAMPLED, PolicyInput
from operant.engines.jax.normalize import EPSILON
from operant.engines.jax.soft_actor_critic import SoftActorCritic
from operant.engines.jax.td3 import Td3
from operant.envs.functional.env import Discrete, unnamed
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.errors import UsageError
from operant.policy.array_policy import ArrayPolicy, Recording
from operant.policy.network import Network, box_head, discrete_head
from operant.policy.reader import Layer
from operant.spec.schema import Spec
from operant.spec.settings.nets import Net


class TrainedPolicy(ArrayPolicy):
    """The policy of a checkpoint of this engine; observations and actions are those of the compiled environment."""

    def __init__(self, spec: Spec, checkpoint: Path, device: str) -> None:
        meta = spec.meta.model_copy(update={"device": device})
        self._spec = spec.model_copy(update={"meta": meta})
        self._learner, self._policy = load_policy(self._spec, checkpoint)
        self._env = self._learner.env
        self._hyper = self._learner.hyper(spec)
        self.obs_shape, self.obs_dtype = self._env.observation_shape, np.dtype(np.float32)
        self._host = HostSpaces(spec.env) if self._env.on_host else None
        if self._host is not None:
            self.obs_dtype = self._host.obs_dtype
        self._play = jax.jit(self._env_actions)
        self.recurrent, self._hidden = self._learner.init_hidden(1) is not None, None
        super().__init__()

    def seed(self, seed: int) -> None:
        self._key, self._calls = jax.random.key(seed), 0

    def outputs(self, obs: np.ndarray, begun: np.ndarray) -> np.ndarray:
        output, self._hidden = self._learner.outputs_and_hidden(self._policy, self._policy_input(obs, None, begun))
        return np.asarray(output)

    def _policy_input(self, obs: np.ndarray, mask: np.ndarray | None, begun: np.ndarray) -> PolicyInput:
        """What the policy is shown; where all episodes begin, there may be another number of them than before."""
        if not self.recurrent:
            return PolicyInput(jnp.asarray(obs), mask)
        hidden = self._learner.init_hidden(len(obs)) if begun.all() else self._hidden
        return PolicyInput(jnp.asarray(obs), mask, begun, hidden)

    def record(self, steps: int, num: int, seed: int) -> Recording:
        if self._host is not None:
            return self._record_on_host(steps, num, seed)
        env = self._env
        keys = jax.random.split(jax.random.key(seed), num)
        states, now = jax.jit(jax.vmap(env.reset))(unnamed(keys))
        advance, masks = jax.jit(env.advance), jax.jit(jax.vmap(env.mask)) if env.masked else None
        obs, mask = [], []
        for step in range(steps):
            legal = masks(states) if masks else None
            obs.append(np.asarray(now, np.float32))
            mask.append(None if legal is None else np.asarray(legal))
            key, at = jax.random.key(seed + 1), jnp.int32(SAMPLED)
            actions, _ = self._play(self._policy, PolicyInput(now, legal), jax.random.fold_in(key, step), at)
            states, now, _ = advance(states, actions, jax.vmap(jax.random.fold_in, (0, None))(keys, step + 1))
        begun = np.zeros((steps, num), bool)
        return Recording(np.stack(obs), begun, None if mask[0] is None else np.stack(mask))

    def network(self) -> Network:
        if self._spec.meta.precision != "float32" or self._spec.meta.storage != "float32":
            raise UsageError(
                "this policy was trained to compute in half precision, which exported files do not do",
                remedy="session.policy() plays it as it is",
            )
        if self._spec.agent.net.READS_IMAGES:
            raise UsageError(
                "the jax engine exports perceptrons only, and this policy reads images",
                remedy="session.policy() plays it; or train it with -s engine=torch, which exports it",
            )
        actions = self._env.actions
        is_discrete = isinstance(actions, Discrete)
        shape, dtype = () if is_discrete else actions.shape, "int64" if is_discrete else "float32"
        if self._host is not None:
            shape, dtype = self._host.actions.env_shape, np.dtype(self._host.actions.log_dtype).name
        layers = [*self._normalization(), *self._layers()]
        return Network(self.obs_shape, self.obs_dtype.name, layers, self._head(), shape, dtype, self._env.masked)

    def _record_on_host(self, steps: int, num: int, seed: int) -> Recording:
        vector = AutoresetVectorEnv(self._spec.env, num, lambda i, k: seed + i + k * num, brief=True)
        rows: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
        for step in range(steps):
            rows.append((vector.obs, vector.begun, vector.mask))
            key = jax.random.fold_in(jax.random.key(seed + 1), step)
            seen = self._policy_input(vector.obs, vector.mask, vector.begun)
            actions, self._hidden = self._play(self._policy, seen, key, jnp.int32(SAMPLED))
            vector.step(np.asarray(actions))
        vector.close()
        self.reset()  # its hidden states are those of these environments now
        obs, begun, mask = zip(*rows, strict=True)
        return Recording(np.stack(obs), np.stack(begun), None if mask[0] is None else np.stack(mask))

    def _act(self, obs: np.ndarray, deterministic: bool, mask: np.ndarray | None, begun: np.ndarray) -> Any:
        key = jax.random.fold_in(self._key, self._calls)
        self._calls += not deterministic
        mode = jnp.int32(GREEDY if deterministic else SAMPLED)
        found, self._hidden = self._play(self._policy, self._policy_input(obs, mask, begun), key, mode)
        actions = np.asarray(found)
        if self._host is not None:
            return self._host.actions.to_env(actions)
        return actions.tolist() if isinstance(self._env.actions, Discrete) else actions

    def _env_actions(self, policy: Any, seen: PolicyInput, key: Array, mode: Array) -> tuple[Array, Any]:
        action, hidden = self._learner.act_and_hidden(policy, self._hyper, seen, key, mode)
        return (action if self._env.on_host else distributions.to_env_action(self._env.actions, action)), hidden

    def _array(self, obs: Any) -> np.ndarray:
        """As it is, or flattened as in training where the environment's own observations are no arrays of one type."""
        flattened = None if self._host is None else self._host.flattened
        if flattened is not None and flattened.contains(obs):
            return np.asarray(gym.spaces.flatten(flattened, obs), self.obs_dtype)
        return super()._array(obs)

    def _normalization(self) -> list[Layer]:
        stats = self._policy.obs_stats
        if stats is None:
            return []
        mean, variance = np.asarray(stats.mean), np.asarray(stats.variance)
        deviation = np.sqrt(variance + np.float32(EPSILON))
        return [{"op": "normalize", "mean": mean, "std": deviation, "clip": float(self._spec.env.clip_obs)}]

    def _layers(self) -> list[Layer]:
        params, net = jax.device_get(self._policy.params), self._spec.agent.net
        if net.memory is not None:
            return recurrent_layers(net, params)
        if isinstance(self._learner, Dqn):
            dense = [*params["trunk"], _joined_heads(params)]
        else:
            dense = [*params.get("trunk", []), *params["actor"]]
        return _dense(net, dense)[:-1]

    def _head(self) -> list[Layer]:
        actions = self._env.actions
        if isinstance(actions, Discrete):
            return discrete_head(0 if self._host is None else self._host.actions.start)
        is_bounded = math.isfinite(actions.low) and math.isfinite(actions.high)
        low, high = (actions.low, actions.high) if is_bounded else (-1.0, 1.0)
        numbers = (np.full(actions.shape, value, np.float32) for value in ((high - low) / 2, (high + low) / 2))
        tanh: list[Layer] = []
        if isinstance(self._learner, SoftActorCritic):
            tanh = [{"op": "first", "count": math.prod(actions.shape)}, {"op": "tanh"}]
        elif isinstance(self._learner, Td3):
            tanh = [{"op": "tanh"}]
        if self._host is not None:
            space = self._host.actions
            return [*tanh, *box_head(space.bounded, space.half, space.middle)]
        return [*tanh, *box_head(np.full(actions.shape, is_bounded), *numbers)]


def recurrent_layers(net: Net, params: dict[str, Any]) -> list[Layer]:
    """The layers of a recurrent policy; hidden states are laid out [h or c, layer, unit]."""
    stream, memory = params["trunk" if net.shared else "actor"], net.memory
    assert memory is not None, "it is recurrent"
    cells: list[Layer] = []
    for k, cell in enumerate(stream["cells"]):
        arrays = {name: np.asarray(cell[name]["weight"]) for name in ("input", "recurrent")}
        arrays |= {f"{name}_bias": np.asarray(cell[name]["bias"]) for name in ("input", "recurrent")}
        places = {"units": memory.units, "hidden": k * memory.units}
        if memory.cell == "lstm":
            places["cell"] = (memory.layers + k) * memory.units
        cells.append({"op": memory.cell, **places, **arrays})
    return [*_dense(net, stream["layers"]), *cells, _dense(net, [params["actor"]["head"]])[0]]


def _dense(net: Net, layers: list[Any]) -> list[Layer]:
    """Linear layers, each with the activation after it."""
    found: list[Layer] = []
    for layer in layers:
        found.append({"op": "dense", "weight": np.asarray(layer["weight"]), "bias": np.asarray(layer["bias"])})
        found.append({"op": net.activation})
    return found


def _joined_heads(params: dict[str, Any]) -> dict[str, np.ndarray]:
    """Duelling heads as one layer: V + A - mean(A) is linear in the features."""
    advantage = params["advantage"]
    if "state" not in params:
        return advantage
    return {name: value - value.mean(-1, keepdims=True) + params["state"][name] for name, value in advantage.items()}
