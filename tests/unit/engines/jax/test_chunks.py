"""How updates are shared out to chunks and rows, and that no result depends on it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from operant.engines import engine_of
from operant.engines.jax import chunks
from operant.engines.jax.chunks import ChunkLength, most_rows, row_sizes, row_updates, updates_left
from operant.engines.jax.learner import Learner
from operant.run.records import Records, difference
from operant.run.run import Run
from operant.run.schedule import Schedule
from operant.spec.schema import Spec

EVERY = {"log_frequency": 100, "eval_frequency": 1000, "save_frequency": 700}


def learner_of(frames: int, budget: int, **meta: int) -> Learner:
    spec = SimpleNamespace(meta=SimpleNamespace(**meta), env=SimpleNamespace(max_frame=budget))
    return cast(Learner, SimpleNamespace(frames=frames, spec=spec))


def walked(learner: Learner, meta: dict[str, int], until: int, rows: Any) -> tuple[list[int], list[int], list[int]]:
    """The frames where rows end, where there is an evaluation, and where a checkpoint, of a session up to `until`."""
    budget = learner.spec.env.max_frame
    schedule, frames = Schedule(meta, budget, until), 0
    schedule.start(0, is_saved=False)
    ends, evaluated, saved = [], [], []
    of_row = row_updates(learner)
    while not schedule.done(frames, stop=False):
        updates = updates_left(learner, of_row, rows(), frames, schedule.next_due(frames))
        sizes = row_sizes(of_row, updates)
        assert sum(sizes) == updates
        assert updates > 0
        for size in sizes:
            frames += size * learner.frames
            ends.append(frames)
        evaluated += [frames] if schedule.due("eval", frames, stop=False) else []
        saved += [frames] if schedule.due("save", frames, stop=False) else []
    return ends, evaluated, saved


@pytest.mark.parametrize("seed", range(20))
def test_the_number_of_rows_in_a_chunk_changes_nothing_that_is_due(seed: int):
    draw = Random(seed)
    meta = {name: every * draw.randint(1, 9) for name, every in EVERY.items()}
    budget = draw.randint(500, 20_000)
    learner = learner_of(draw.choice([7, 64, 100, 512]), budget, **meta)
    until = draw.randint(1, budget)
    one_by_one = walked(learner, meta, until, lambda: 1)
    assert walked(learner, meta, until, lambda: 16) == one_by_one
    assert walked(learner, meta, until, lambda: draw.randint(1, 16)) == one_by_one


def test_chunks_of_long_rows_have_one():
    assert [most_rows(updates) for updates in (1, 4, 5, 32, 33, 2000)] == [16, 16, 12, 2, 1, 1]


def test_a_chunk_grows_while_it_is_short_and_shrinks_when_it_is_long():
    length = ChunkLength(8)
    found = []
    for seconds in (0.01, 0.01, 0.01, 0.01, 0.2, 1.0, 1.0, 1.0, 1.0):
        length.took(seconds)
        found.append(length.rows)
    assert found == [2, 4, 8, 8, 8, 4, 2, 1, 1]


@pytest.mark.parametrize("algorithm", ["ppo", pytest.param("sac", marks=pytest.mark.slow)])
def test_long_chunks_write_the_bytes_of_short_ones(algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    settings = {"ppo": {"time_horizon": 16, "minibatch_size": 32}, "sac": {"training_start": 64}}[algorithm]
    document = {
        "engine": "jax",
        "env": {"name": "CartPole-v1", "num_envs": 4, "max_frame": 2000},
        "agent": {"algorithm": {"name": algorithm, **settings}, "net": {"hidden": [8]}},
        "meta": {"log_frequency": 64, "eval_frequency": 900, "save_frequency": 640, "final_episodes": 2},
    }
    spec, found = Spec.model_validate(document), []
    for name, short in (("short", -1.0), ("long", 1e9)):
        monkeypatch.setattr(chunks, "SHORT", short)
        monkeypatch.setattr(chunks, "LONG", 1e9)
        resolved = spec.model_dump(mode="json")
        run = Run.create(tmp_path / name, name=name, spec=resolved, seed=1, session=0, threads=1)
        engine_of(spec).train(run)
        found.append(Records.of(run))
    assert difference(*found) is None
    assert len(found[0].metrics) > 30
