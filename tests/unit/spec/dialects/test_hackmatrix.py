"""The flags of HackMatrix's trainer as settings of a spec."""

from __future__ import annotations

import pytest

from operant.errors import UsageError
from operant.spec.dialects.hackmatrix import SWITCHES, read_flags
from operant.spec.load import load
from operant.spec.settings.ppo import PpoSpec
from operant.spec.settings.trackers import WandbSpec

SPEC = load("ppo_hackmatrix").spec


def spec_of(flags: str, *overrides: str):
    base = load("ppo_hackmatrix", None, overrides).spec
    return load("ppo_hackmatrix", None, [*read_flags(flags, base).overrides, *overrides]).spec


def test_no_flags_change_nothing():
    assert read_flags("", SPEC).overrides == []


def test_a_large_batch_is_scaled_as_the_trainer_does():
    spec = spec_of("--num-envs 2048 --lr 6.25e-5 --ent-coef=0.2 --total-timesteps 100_000_000 --log-interval 5")
    algorithm = spec.agent.algorithm
    assert isinstance(algorithm, PpoSpec)
    samples = 2048 * 128
    assert (spec.env.num_envs, algorithm.minibatch_size, algorithm.auto_scale) == (2048, samples // 4, True)
    assert algorithm.scaled(2048) == (8192, 2)
    assert spec.agent.net.optimizer.lr == 6.25e-5
    assert algorithm.entropy_coef == 0.2
    assert spec.env.max_frame == 100_000_000 // samples * samples
    assert spec.meta.log_frequency == 5 * samples


def test_another_number_of_minibatches_is_kept():
    spec = spec_of("--num-envs 512 --num-minibatches 8 --hidden-dim 128 --num-layers 3 --save-interval-minutes 2.5")
    assert isinstance(spec.agent.algorithm, PpoSpec)
    assert spec.agent.algorithm.minibatch_size == 512 * 128 // 8
    assert not spec.agent.algorithm.auto_scale
    assert spec.agent.net.hidden == (128, 128, 128)
    assert spec.meta.save_minutes == 2.5


def test_a_tiny_budget_still_makes_three_updates():
    assert spec_of("--total-timesteps 1000").env.max_frame == 3 * 256 * 128


def test_updates_are_counted_in_the_games_of_the_spec():
    base = load("ppo_hackmatrix_2048").spec
    flags = read_flags("--log-interval 5 --total-timesteps 1000 --num-minibatches 8 --num-layers 3", base).overrides
    spec = load("ppo_hackmatrix_2048", None, flags).spec
    assert isinstance(spec.agent.algorithm, PpoSpec)
    assert (spec.meta.log_frequency, spec.env.max_frame) == (5 * 2048 * 128, 3 * 2048 * 128)
    assert spec.agent.algorithm.minibatch_size == 2048 * 128 // 8
    assert spec.agent.net.hidden == (256, 256, 256)


def test_what_says_nothing_in_a_spec_is_told():
    found = read_flags("--no-wandb --no-artifact --project games", SPEC)
    assert found.overrides == []
    assert [line.partition(":")[0] for line in found.remarks] == ["--no-wandb", "--no-artifact", "--project"]


def test_trackers_names_and_folders():
    spec = spec_of("--wandb --project games --entity us --run-name first")
    (tracker,) = spec.meta.track
    assert isinstance(tracker, WandbSpec)
    assert (spec.name, tracker.project, tracker.entity) == ("first", "games", "us")
    assert spec_of("--run-suffix two").name == "ppo_hackmatrix-two"
    found = read_flags("--checkpoint-dir there --resume-run first --benchmark", SPEC)
    assert (found.root, found.resumes, found.measures) == ("there", "first", True)


def test_a_cpu_and_one_loop():
    spec = spec_of("--auto-tune --monolithic --total-timesteps 100000", "meta.device=cpu")
    assert isinstance(spec.agent.algorithm, PpoSpec)
    assert (spec.env.num_envs, spec.agent.algorithm.minibatch_size) == (64, 64 * 128 // 2)
    assert spec.meta.log_frequency == spec.meta.save_frequency == spec.env.max_frame == 100_000 // 8192 * 8192


PUBLISHED = """
num-envs num-steps total-timesteps lr gamma gae-lambda num-minibatches update-epochs clip-eps vf-coef ent-coef
max-grad-norm hidden-dim num-layers log-interval wandb project entity run-name run-suffix resume-run save-interval
checkpoint-dir no-artifact seed auto-tune benchmark monolithic"""


@pytest.mark.parametrize("flag", PUBLISHED.split())
def test_every_flag_of_the_published_trainer_is_taken(flag: str):
    assert read_flags(f"--{flag}" if flag in SWITCHES else f"--{flag} 4", SPEC)


@pytest.mark.parametrize(
    ("flags", "cause", "remedy"),
    [
        ("--learning-rate 1e-3", "there is no flag --learning-rate", "the flags are those"),
        ("--num-env 4", "there is no flag --num-env", "did you mean --num-envs?"),
        ("num-envs 4", "there is no flag num-envs", "did you mean --num-envs?"),
        ("--lr fast", "--lr takes a number, not 'fast'", "--lr N"),
        ("--num-envs 1.5", "--num-envs takes a whole number", "--num-envs N"),
        ("--lr", "--lr lacks its value", "--lr VALUE"),
        ("--num-minibatches 7", "7 minibatches do not divide 32,768 samples", "--num-minibatches 4"),
        ("--curriculum", "--curriculum has no counterpart", "one rule set: leave it out"),
        ("--run-name 'x", "No closing quotation", "close the quotation"),
    ],
)
def test_a_mistake_is_named(flags: str, cause: str, remedy: str):
    with pytest.raises(UsageError) as refused:
        read_flags(flags, SPEC)
    assert cause in refused.value.cause
    assert remedy in (refused.value.remedy or "")
