"""The files of a checkpoint of this engine. Nothing is pickled, so opening one never runs code.

`policy.safetensors` is all that is needed to act; `learner.safetensors` and `learner.json` are the
rest of what exact resume needs: environments, PRNG keys, optimizer state, and what the host counts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten_with_path, tree_unflatten
from safetensors.numpy import load_file, save_file

from operant.engines.jax.learner import Policy, TrainState
from operant.errors import RunError
from operant.run.layout import FACTS_FILE, LEARNER_FILE, POLICY_FILE
from operant.run.restoring import Saved

ENV_PREFIX = "env/"  # of arrays that reproduce environments on the host
# Names of fields in checkpoint files, where they differ from those in the code.
STORED_NAMES = {
    "obs_stats": "seen",
    "opt_state": "optimiser",
    "opt_states": "memories",
    "return_stats": "rewards",
    "updates": "update",
    "envs": "worlds",
    "env_state": "env",
    "discounted_return": "running",
    "buffer": "ring",
    "transitions": "kept",
    "next_observation": "successor",
}


def write(folder: Path, state: TrainState, facts: dict[str, Any], env_state: dict[str, np.ndarray]) -> None:
    """Save one lane's state, whose arrays are on the host, what the host counts, and its environments if it has any."""
    save_file(_named(state.policy), folder / POLICY_FILE)
    envs = {f"{ENV_PREFIX}{name}": np.asarray(array, order="C") for name, array in env_state.items()}
    save_file({**_named((state.learner, state.rollout)), **envs}, folder / LEARNER_FILE)
    # Not sorted: the order of the open averages is the order of their columns in the next row.
    (folder / FACTS_FILE).write_text(json.dumps(facts))


def read(folder: Path, like: TrainState) -> tuple[TrainState, dict[str, Any], dict[str, np.ndarray]]:
    """What `write` saved; `like` has the same shapes as the state."""
    arrays = load_file(folder / LEARNER_FILE)
    learner, rollout = _filled((like.learner, like.rollout), arrays)
    facts = Saved(json.loads((folder / FACTS_FILE).read_text()), folder / FACTS_FILE)
    envs = {name.removeprefix(ENV_PREFIX): a for name, a in arrays.items() if name.startswith(ENV_PREFIX)}
    return TrainState(read_policy(folder, like.policy), learner, rollout), facts, envs


def read_policy(folder: Path, like: Policy) -> Policy:
    """Only what is needed to act."""
    return _filled(like, load_file(folder / POLICY_FILE))


def to_host(tree: Any) -> Any:
    """A pytree with its arrays on the host; keys of random streams as their numbers."""
    return jax.device_get(jax.tree.map(lambda x: jax.random.key_data(x) if _is_key(x) else x, tree))


def _named(tree: Any) -> dict[str, np.ndarray]:
    leaves, _ = tree_flatten_with_path(tree)
    return {_name(path): np.asarray(leaf, order="C") for path, leaf in leaves}


def _filled(like: Any, arrays: dict[str, np.ndarray]) -> Any:
    leaves, form = tree_flatten_with_path(like)
    return tree_unflatten(form, [_leaf(_name(path), leaf, arrays) for path, leaf in leaves])


def _leaf(name: str, like: Any, arrays: dict[str, np.ndarray]) -> Any:
    found = arrays.get(name)
    shape = jax.eval_shape(jax.random.key_data, like).shape if _is_key(like) else like.shape
    if found is None or found.shape != shape:
        had = "nothing" if found is None else f"shape {found.shape}"
        raise RunError(
            f"the checkpoint does not fit: {name} needs shape {shape}, but {had} was saved",
            remedy="keep env and agent as they were when the checkpoint was written, or start a new run",
        )
    return jax.random.wrap_key_data(jnp.asarray(found)) if _is_key(like) else found


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _name(path: Any) -> str:
    """The path of a leaf in its pytree as it is stored, with slashes; names below `env_state` are the environment's."""
    parts = [str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path]
    own = parts.index("env_state") + 1 if "env_state" in parts else len(parts)
    return "/".join([*(STORED_NAMES.get(part, part) for part in parts[:own]), *parts[own:]]) or "value"
