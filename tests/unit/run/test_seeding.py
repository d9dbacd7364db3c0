from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from operant.run.seeding import Seeds, restore_rng, rng_state

IDENTITIES = [
    (seed, name, index)
    for seed in (0, 1, 2)
    for name in ("env", "policy", "env:1", "1")
    for index in ((), (0,), (1,), (1, 1), (11,))
]


def test_streams_are_the_same_in_every_version():
    assert Seeds(0).integer("env", 0) == 360283306
    assert Seeds(0).rng("env").integers(0, 1000, 3).tolist() == [979, 547, 876]


def test_the_same_identity_gives_the_same_stream():
    for seed, name, index in IDENTITIES:
        first, again = Seeds(seed).rng(name, *index), Seeds(seed).rng(name, *index)
        assert np.array_equal(first.random(4), again.random(4))
        assert Seeds(seed).integer(name, *index) == Seeds(seed).integer(name, *index)


def test_different_identities_give_different_streams():
    draws = {tuple(Seeds(seed).rng(name, *index).random(4)) for seed, name, index in IDENTITIES}
    integers = {Seeds(seed).integer(name, *index) for seed, name, index in IDENTITIES}
    assert len(draws) == len(integers) == len(IDENTITIES)


def test_streams_do_not_correlate():
    streams = [Seeds(seed).rng(name, *index).normal(size=4000) for seed, name, index in IDENTITIES[:12]]
    for one, other in itertools.combinations(streams, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.08


def test_drawing_from_one_stream_leaves_another_alone():
    seeds = Seeds(3)
    untouched = seeds.rng("policy").random(5)
    seeds.rng("env").random(1000)
    assert np.array_equal(seeds.rng("policy").random(5), untouched)


def test_integers_cover_their_range_evenly():
    values = np.array([Seeds(0).integer("env", k) for k in range(4000)])
    assert values.min() >= 0
    assert values.max() < 2**31
    assert np.histogram(values, bins=8, range=(0, 2**31))[0].min() > 400


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_a_generator_continues_from_its_json_state(bits: str):
    generator = np.random.Generator(getattr(np.random, bits)(1))
    generator.random(5)
    generator.integers(0, 9, dtype=np.int32)
    twin = restore_rng(json.loads(json.dumps(rng_state(generator))))
    assert np.array_equal(twin.integers(0, 100, 9, dtype=np.int32), generator.integers(0, 100, 9, dtype=np.int32))
    assert np.array_equal(twin.normal(size=9), generator.normal(size=9))
