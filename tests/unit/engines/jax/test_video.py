"""A policy that was trained in MJX is watched in Gymnasium's environment of the same name, and MJX is not asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

import operant.engines.jax as engine
from operant.errors import UsageError
from operant.run.checkpoint import newest_good
from operant.run.run import Run
from operant.spec.schema import Spec

NAME = "InvertedPendulum-v5"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A policy of Gymnasium's environment, whose weights have the shapes of one of MJX's."""
    pytest.importorskip("mujoco")
    env = {"name": NAME, "num_envs": 2, "max_frame": 64}
    agent = {"algorithm": {"name": "ppo", "time_horizon": 32, "minibatch_size": 32}, "net": {"hidden": [8]}}
    counts = {"log_frequency": 64, "eval_frequency": 64, "save_frequency": 64, "eval_episodes": 1, "final_episodes": 1}
    spec = Spec.model_validate({"engine": "jax", "env": env, "agent": agent, "meta": counts})
    place = tmp_path_factory.mktemp("run") / "session"
    run = Run.create(place, name="pole", spec=spec.model_dump(mode="json"), seed=0, session=0, threads=1)
    engine.train(run)
    return run


def of_mjx(run: Run) -> Run:
    """The run, as if MJX had simulated it."""
    return replace(run, spec={**run.spec, "env": {**run.spec["env"], "name": f"mjx/{NAME}"}})


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_it_is_drawn_by_gymnasium_and_says_so(
    trained: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
):
    saved, _ = newest_good(trained.checkpoints)
    assert saved is not None
    video = tmp_path / f"pole{suffix}"
    try:
        (episode,) = engine.watch(of_mjx(trained), saved, 1, 9, video)
    except UsageError as problem:
        if "cannot be drawn on this machine" in problem.cause:
            pytest.skip(problem.cause)
        raise
    assert capsys.readouterr().out == f"MJX draws nothing: mjx/{NAME} is played in Gymnasium's {NAME}\n"
    (peer,) = engine.evaluate(trained, saved, 1, 9)
    assert (episode.env, episode.score, episode.length) == (NAME, peer.score, peer.length)
    if suffix == ".gif":
        with Image.open(video) as opened:
            frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(opened)]
        assert len({frame.tobytes() for frame in frames}) > 1, "the pole moves"
        assert frames[0].std() > 10, "it is no empty picture"
    else:
        assert video.read_bytes()[4:8] == b"ftyp"
