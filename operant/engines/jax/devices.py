"""One program on several devices: environments are split among them, weights are the same on all.

Inside the program an axis name stands for the devices; without one (None) the sums below are of
this device alone, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "devices"
Axis = str | None
SPLIT = PartitionSpec(None, AXIS)  # the first axis is the lanes', the second that of environments
WHOLE = PartitionSpec()


def on_gpu() -> bool:
    """Whether programs compute on a GPU."""
    return jax.default_backend() in ("gpu", "cuda")


def scan_unroll(steps: int) -> int:
    """Steps of a light scan to compile as one: on an accelerator each costs a launch, on a CPU only compile time."""
    return 1 if jax.default_backend() == "cpu" else min(16, steps)


def mean_over(axis: Axis, value: Any) -> Any:
    """The mean over devices of each array in a pytree."""
    return value if axis is None else lax.pmean(value, axis)


def sum_over(axis: Axis, value: Any) -> Any:
    """The sum over devices of each array in a pytree."""
    return value if axis is None else lax.psum(value, axis)


def max_over(axis: Axis, value: Any) -> Any:
    """The largest over devices of each array in a pytree."""
    return value if axis is None else lax.pmax(value, axis)


def device_key(axis: Axis, key: Array) -> Array:
    """This device's own stream of randomness."""
    return key if axis is None else jax.random.fold_in(key, lax.axis_index(axis))


def split_over(devices: int, function: Callable[..., Any], given: Any, back: Any) -> Callable[..., Any]:
    """`function` on `devices` devices; `given` and `back` say what of its arguments and results is split."""
    return jax.shard_map(function, mesh=mesh(devices), in_specs=given, out_specs=back, check_vma=False)


def mesh(devices: int) -> Mesh:
    """`devices` devices in a row: the first of each process, as many of each."""
    processes = range(jax.process_count())
    each = devices // len(processes)
    return Mesh(np.array([device for number in processes for device in jax.local_devices(number)[:each]]), (AXIS,))


def place(devices: int, state: Any, specs: Any) -> Any:
    """A state on its devices; `specs` is its pytree of partitions, or a prefix of it."""
    if devices == 1:
        return jax.device_put(state, jax.devices()[0])
    grid = mesh(devices)
    is_spec = lambda leaf: isinstance(leaf, PartitionSpec)  # noqa: E731 - only to stop at the leaves
    shardings = jax.tree.map(lambda spec: NamedSharding(grid, spec), specs, is_leaf=is_spec)
    if jax.process_count() > 1:
        return jax.tree.map(_put_shares, state, _spread(shardings, state))
    return jax.device_put(state, _spread(shardings, state))


def _put_shares(x: Any, sharding: NamedSharding) -> Array:
    """An array that every process has whole, with each process's share on its devices."""
    if isinstance(x, Array) and not x.is_fully_addressable:
        return x
    if _is_key(x):
        return jax.random.wrap_key_data(_put_shares(jax.random.key_data(x), sharding))
    whole = np.asarray(x)
    return jax.make_array_from_callback(whole.shape, sharding, lambda share: whole[share])


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def gathered(devices: int, tree: Any) -> Any:
    """A pytree whose arrays are whole in this process; those that are split among processes are joined."""
    if jax.process_count() == 1:
        return tree

    def whole(x: Array) -> Any:
        if _is_key(x):
            return jax.random.wrap_key_data(whole(jax.random.key_data(x)))
        return np.asarray(x if x.is_fully_replicated else _joining(devices)(x))

    # One array after another: of large ones, such as a replay buffer, a device then holds one at a time.
    return jax.tree.map(whole, tree)


@cache
def _joining(devices: int) -> Callable[[Array], Array]:
    return jax.jit(lambda x: x, out_shardings=NamedSharding(mesh(devices), WHOLE))


def of_this_process(tree: Any) -> Any:
    """A pytree that is the same on all devices, on the first of this process alone."""
    return tree if jax.process_count() == 1 else jax.tree.map(lambda x: x.addressable_data(0), tree)


def _spread(prefix: Any, tree: Any) -> Any:
    """The prefix's leaves, repeated for every leaf of `tree` below them."""
    return jax.tree.map(
        lambda sharding, below: jax.tree.map(lambda _: sharding, below),
        prefix,
        tree,
        is_leaf=lambda leaf: isinstance(leaf, NamedSharding),
    )
