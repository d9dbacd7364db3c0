"""The seeds of training episodes: never one of evaluation's, and known afterwards from the episodes' numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from safetensors import safe_open

from operant.errors import UsageError
from operant.run.layout import LEARNER_FILE, shown
from operant.run.run import Run
from operant.run.seeding import EpisodeSeeds, Seeds, reserved_seeds
from operant.spec.schema import Spec

NUMBERS = "env/episode"  # in a checkpoint: the number of every environment's episode


def episode_seeds(spec: Spec, seeds: Seeds) -> EpisodeSeeds:
    """Those of a session's training episodes."""
    return EpisodeSeeds(seeds, evaluation_seeds(spec))


def evaluation_seeds(spec: Spec) -> range:
    """Those that no training episode of this spec has."""
    return reserved_seeds(spec.meta.eval_seed, spec.meta.eval_episodes, spec.meta.final_episodes)


def refuse_trained_seeds(run: Run, spec: Spec, checkpoint: Path, seeds: range) -> None:
    """`UsageError` if a training episode before this checkpoint had one of `seeds`."""
    reserved = evaluation_seeds(spec)
    if seeds.start >= reserved.start and seeds.stop <= reserved.stop:
        return
    for env, episode, seed in trained_seeds(episode_seeds(spec, Seeds(run.seed)), checkpoint):
        if seed in seeds:
            raise UsageError(
                f"seed {seed} is that of a training episode (number {episode} of environment {env}),"
                " so its score would not be one of evaluation",
                place=shown(run.path),
                remedy=f"--seed {reserved.start}: training never has the {len(reserved):,} seeds from there on;"
                f" or operant watch --seed {seed}, to see the policy play that episode",
            )


def trained_seeds(episode_seed: EpisodeSeeds, checkpoint: Path) -> Iterator[tuple[int, int, int]]:
    """Environment, number and seed of every training episode that was begun before a checkpoint.

    There are none where environments are compiled: their training episodes begin without seeds.
    """
    with safe_open(checkpoint / LEARNER_FILE, "numpy") as arrays:
        begun = arrays.get_tensor(NUMBERS).tolist() if NUMBERS in arrays.keys() else []  # noqa: SIM118 - no mapping
    for env, last in enumerate(begun):
        for episode in range(last + 1):
            yield env, episode, episode_seed(env, episode)
