"""What is packed comes back, and only small numbers are copied."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from operant.engines.jax.host.packing import SMALL, Packing

TREE = {
    "weights": [jnp.arange(6.0).reshape(2, 3), jnp.ones((SMALL + 1,))],
    "rate": jnp.float32(0.25),
    "steps": jnp.int32(7),
    "nothing": None,
    "half": jnp.ones(3, jnp.bfloat16),
}


def test_a_tree_comes_back_within_a_program():
    packing = Packing(jax.eval_shape(lambda: TREE))
    back = jax.jit(lambda packed: packing.unpack(packed))(jax.jit(packing.pack)(TREE))
    assert jax.tree.structure(back) == jax.tree.structure(TREE)
    for mine, theirs in zip(jax.tree.leaves(back), jax.tree.leaves(TREE), strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        np.testing.assert_array_equal(np.asarray(mine, np.float64), np.asarray(theirs, np.float64))


def test_small_floats_are_one_array_and_the_others_stay_apart():
    vector, *others = Packing(TREE).pack(TREE)
    assert sorted(vector.tolist()) == sorted([0, 1, 2, 3, 4, 5, 0.25])
    assert sorted(leaf.size for leaf in others) == [1, 3, SMALL + 1]


def test_a_tree_without_small_arrays_is_packed_too():
    tree = [jnp.ones(SMALL + 1)]
    packing = Packing(tree)
    assert packing.unpack(packing.pack(tree))[0].shape == (SMALL + 1,)
