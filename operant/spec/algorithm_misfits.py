"""The misfits that algorithms look for: batches, rounds, replays and schedules that do not add up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from operant.spec.fitting import closest, divisors, in_words, near_divisors, near_multiples, neighbours
from operant.spec.misfit import Misfit

if TYPE_CHECKING:
    from operant.spec.algorithms import DqnSpec
    from operant.spec.off_policy import SoftAlgorithm, TwinAlgorithm
    from operant.spec.on_policy import AdvantageAlgorithm, ReinforceSpec
    from operant.spec.proximal import ProximalAlgorithm
    from operant.spec.schema import Spec

    Replaying = DqnSpec | TwinAlgorithm

ROLLOUT = ("agent.algorithm.time_horizon", "env.num_envs")


def minibatch_misfits(spec: Spec, ppo: ProximalAlgorithm) -> Iterable[Misfit]:
    """The samples of one update must split into equal minibatches, and the budget hold one update."""
    envs, horizon, size = spec.env.num_envs, ppo.time_horizon, ppo.minibatch_size
    samples = envs * horizon
    arithmetic = f"num_envs x time_horizon = {envs} x {horizon} = {samples}"
    least = 2 if ppo.normalize_advantages == "standardise" else 1
    step = size // math.gcd(size, envs)
    memory = spec.agent.net.memory
    if memory and (size % horizon or envs % (size // horizon)):
        yield _cut_sequences(spec, ppo, memory.cell)
    elif samples % size:
        sizes = near_divisors(samples, size, least)
        yield Misfit(
            "agent.algorithm.minibatch_size",
            f"does not divide {arithmetic}",
            in_words(sizes, "time_horizon", near_multiples(step, horizon, most=1_000_000)),
            closest(sizes, size),
            ROLLOUT,
        )
    elif size < least:
        sizes = near_divisors(samples, size, least)
        yield Misfit(
            "agent.algorithm.minibatch_size",
            "is too few to standardise advantages over",
            in_words(sizes, "normalize_advantages", ["none"]),
            closest(sizes, size),
            ("agent.algorithm.normalize_advantages",),
        )
    if samples > spec.env.max_frame:
        longest = spec.env.max_frame // envs // step * step
        horizons = [longest] if longest else []
        yield Misfit(
            "env.max_frame",
            f"ends before the first update of {arithmetic} frames",
            in_words([f"{samples} or more"], "time_horizon", horizons),
            samples,
            ROLLOUT,
        )


def _cut_sequences(spec: Spec, ppo: ProximalAlgorithm, cell: str) -> Misfit:
    """A network that remembers learns from what an environment played in one update, never from a part of it."""
    envs, horizon, size = spec.env.num_envs, ppo.time_horizon, ppo.minibatch_size
    sizes = neighbours([horizon * share for share in divisors(envs)], size)
    horizons = neighbours(sorted(size // share for share in divisors(envs) if size % share == 0), horizon)
    return Misfit(
        "agent.algorithm.minibatch_size",
        f"is no equal share of {envs} whole sequences of {horizon} steps (num_envs x time_horizon), as {cell} needs",
        in_words(sizes, "time_horizon", horizons),
        closest(sizes, size),
        ROLLOUT,
    )


def rollout_misfits(spec: Spec, steps: int, least: int = 1) -> Iterable[Misfit]:
    """The budget holds one update of `steps` steps of each environment, with at least `least` samples."""
    envs, samples = spec.env.num_envs, spec.env.num_envs * steps
    arithmetic = f"num_envs x training_frequency = {envs} x {steps} = {samples}"
    if samples < least:
        yield Misfit(
            "agent.algorithm.training_frequency",
            f"is too few to standardise advantages over: {arithmetic}",
            in_words([f"{least} or more"], "normalize_advantages", ["false"]),
            least,
            ("agent.algorithm.normalize_advantages", "env.num_envs"),
        )
    if samples > spec.env.max_frame:
        longest = spec.env.max_frame // envs
        yield Misfit(
            "env.max_frame",
            f"ends before the first update of {arithmetic} frames",
            in_words([f"{samples} or more"], "training_frequency", [longest] if longest else []),
            samples,
            ("agent.algorithm.training_frequency", "env.num_envs"),
        )


def step_return_misfits(a2c: AdvantageAlgorithm) -> Iterable[Misfit]:
    """A rollout holds all the rewards that a return is to sum."""
    wanted, steps = a2c.num_step_returns, a2c.training_frequency
    if wanted is not None and wanted > steps:
        yield Misfit(
            "agent.algorithm.num_step_returns",
            f"is more than a rollout holds: training_frequency = {steps}",
            f"{steps} or less; or training_frequency {wanted} or more",
            steps,
            ("agent.algorithm.training_frequency",),
        )


def episode_misfits(spec: Spec, reinforce: ReinforceSpec) -> Iterable[Misfit]:
    """The episodes of one update are shared equally among the environments."""
    yield from _whole_shares(spec, reinforce.training_frequency, most=1_000_000)


def round_misfits(spec: Spec, learner: Replaying) -> Iterable[Misfit]:
    """Training rounds fall on whole steps of all environments, and begin within the budget."""
    yield from _whole_shares(spec, learner.training_frequency, most=10**12)
    if learner.training_start >= spec.env.max_frame:
        yield Misfit(
            "agent.algorithm.training_start",
            f"leaves nothing to train on: env.max_frame = {spec.env.max_frame}",
            f"below {spec.env.max_frame}; or env.max_frame above {learner.training_start}",
            others=("env.max_frame",),
        )


def _whole_shares(spec: Spec, frequency: int, most: int) -> Iterable[Misfit]:
    envs = spec.env.num_envs
    if frequency % envs:
        rounds = near_multiples(envs, frequency, most)
        yield Misfit(
            "agent.algorithm.training_frequency",
            f"is not a multiple of num_envs = {envs}",
            in_words(rounds, "env.num_envs", near_divisors(frequency, envs)),
            closest(rounds, frequency),
            ("env.num_envs",),
        )


def batch_misfits(spec: Spec) -> Iterable[Misfit]:
    """The memory holds a batch."""
    memory = spec.agent.memory
    if memory is not None and memory.batch_size > memory.max_size:
        yield Misfit(
            "agent.memory.batch_size",
            f"is more than the memory holds: max_size = {memory.max_size}",
            f"{memory.max_size} or less; or max_size {memory.batch_size} or more",
            memory.max_size,
            ("agent.memory.max_size",),
        )


def replay_misfits(spec: Spec, learner: Replaying) -> Iterable[Misfit]:
    """The memory holds a step of every environment and a batch, and has one when training starts."""
    memory, envs = spec.agent.memory, spec.env.num_envs
    if memory is None:
        return
    yield from batch_misfits(spec)
    if memory.max_size < envs:
        yield Misfit(
            "agent.memory.max_size",
            f"is less than one step adds: num_envs = {envs}",
            f"{envs} or more; or env.num_envs {memory.max_size} or less",
            envs,
            ("env.num_envs",),
        )
    if learner.training_start < memory.batch_size:
        yield Misfit(
            "agent.algorithm.training_start",
            f"comes before the memory holds one batch: batch_size = {memory.batch_size}",
            f"{memory.batch_size} or more; or memory.batch_size {learner.training_start} or less",
            memory.batch_size,
            ("agent.memory.batch_size",),
        )


def lookahead_misfits(spec: Spec, dqn: DqnSpec) -> Iterable[Misfit]:
    """Transitions wait for `n_step` steps, and the memory must have one batch of them when training starts."""
    memory, envs, start = spec.agent.memory, spec.env.num_envs, dqn.training_start
    if memory is None or start < memory.batch_size:
        return
    most = (start - memory.batch_size) // envs + 1
    if dqn.n_step > most:
        needed = memory.batch_size + (dqn.n_step - 1) * envs
        yield Misfit(
            "agent.algorithm.n_step",
            f"leaves less than one batch of {memory.batch_size} at training_start = {start}",
            f"{most} or less; or training_start {needed} or more",
            most,
            ("agent.algorithm.training_start", "agent.memory.batch_size"),
        )


def temperature_misfits(learner: SoftAlgorithm) -> Iterable[Misfit]:
    """The temperature starts between its bounds; which may not cross follows from it."""
    start, least, most = learner.temperature, learner.temperature_min, learner.temperature_max
    if least is not None and start < least:
        yield Misfit(
            "agent.algorithm.temperature_min",
            f"is above the temperature at the start: temperature = {start:g}",
            f"{start:g} or less; or temperature {least:g} or more",
            start,
            ("agent.algorithm.temperature",),
        )
    if most is not None and start > most:
        yield Misfit(
            "agent.algorithm.temperature_max",
            f"is below the temperature at the start: temperature = {start:g}",
            f"{start:g} or more; or temperature {most:g} or less",
            start,
            ("agent.algorithm.temperature",),
        )
