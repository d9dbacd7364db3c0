from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from toy_trainer import restored_rng

from operant.run.seeding import EpisodeSeeds, Seeds, reserved_seeds, rng_state

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
    twin = restored_rng(json.loads(json.dumps(rng_state(generator))))
    assert np.array_equal(twin.integers(0, 100, 9, dtype=np.int32), generator.integers(0, 100, 9, dtype=np.int32))
    assert np.array_equal(twin.normal(size=9), generator.normal(size=9))


@pytest.mark.parametrize("session", [0, 1, 7, 2**31 - 1])
def test_no_training_episode_has_a_seed_of_evaluation(session: int):
    """Half of all seeds are kept for evaluation here, so that chance alone would fail at once."""
    reserved = range(2**30, 2**31)
    drawn = [EpisodeSeeds(Seeds(session), reserved)(env, episode) for env in range(8) for episode in range(100)]
    assert not any(seed in reserved for seed in drawn)
    assert len(set(drawn)) == len(drawn)


def test_training_seeds_are_what_they_were_unless_evaluation_has_them():
    before = [Seeds(0).integer("env", 0, episode) for episode in range(50)]
    kept = reserved_seeds(before[3], eval_episodes=10, final_episodes=100)
    assert len(kept) == 1000
    after = [EpisodeSeeds(Seeds(0), kept)(0, episode) for episode in range(50)]
    assert [k for k in range(50) if before[k] != after[k]] == [3]


def test_as_many_seeds_are_kept_as_a_spec_plays_on():
    assert reserved_seeds(5, 4000, 100) == range(5, 4005)
    assert reserved_seeds(5, 10, 100_000) == range(5, 100_005)
