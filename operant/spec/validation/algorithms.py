"""Cross-field validation of the reinforcement-learning algorithms: batches, rounds, replays and schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from operant.spec.settings.algorithm import Algorithm
from operant.spec.settings.language_algorithms import VerifiedAlgorithm
from operant.spec.settings.off_policy import DqnSpec, SoftAlgorithm, TwinAlgorithm
from operant.spec.settings.on_policy import (
    AdvantageAlgorithm,
    EpisodicAlgorithm,
    RandomSpec,
    ReinforceSpec,
    SarsaSpec,
)
from operant.spec.settings.ppo import ImitatingAlgorithm, ProximalAlgorithm
from operant.spec.settings.sections import SpecFields
from operant.spec.settings.supervised import LanguageAlgorithm
from operant.spec.validation import language
from operant.spec.validation.conflict import (
    Conflict,
    closest,
    divisors,
    in_words,
    near_divisors,
    near_multiples,
    neighbours,
)

ROLLOUT = ("agent.algorithm.time_horizon", "env.num_envs")


def minibatches(spec: SpecFields, ppo: ProximalAlgorithm) -> Iterable[Conflict]:
    """The samples of one update must split into equal minibatches, and the budget hold one update."""
    if ppo.training_episodes is not None:
        return
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
        yield Conflict(
            "agent.algorithm.minibatch_size",
            f"does not divide {arithmetic}",
            in_words(sizes, "time_horizon", near_multiples(step, horizon, most=1_000_000)),
            closest(sizes, size),
            ROLLOUT,
        )
    elif size < least:
        sizes = near_divisors(samples, size, least)
        yield Conflict(
            "agent.algorithm.minibatch_size",
            "is too few to standardise advantages over",
            in_words(sizes, "normalize_advantages", ["none"]),
            closest(sizes, size),
            ("agent.algorithm.normalize_advantages",),
        )
    if samples > spec.env.max_frame:
        longest = spec.env.max_frame // envs // step * step
        horizons = [longest] if longest else []
        yield Conflict(
            "env.max_frame",
            f"ends before the first update of {arithmetic} frames",
            in_words([f"{samples} or more"], "time_horizon", horizons),
            samples,
            ROLLOUT,
        )


def _cut_sequences(spec: SpecFields, ppo: ProximalAlgorithm, cell: str) -> Conflict:
    """A recurrent network learns from what an environment played in one update, never from a part of it."""
    envs, horizon, size = spec.env.num_envs, ppo.time_horizon, ppo.minibatch_size
    sizes = neighbours([horizon * share for share in divisors(envs)], size)
    horizons = neighbours(sorted(size // share for share in divisors(envs) if size % share == 0), horizon)
    return Conflict(
        "agent.algorithm.minibatch_size",
        f"is no equal share of {envs} whole sequences of {horizon} steps (num_envs x time_horizon), as {cell} needs",
        in_words(sizes, "time_horizon", horizons),
        closest(sizes, size),
        ROLLOUT,
    )


def _budget_of_rollouts(spec: SpecFields, name: str, steps: int, least: int = 1) -> Iterable[Conflict]:
    """The budget holds one update of `steps` steps of each environment, with at least `least` samples."""
    envs, samples = spec.env.num_envs, spec.env.num_envs * steps
    arithmetic = f"num_envs x {name} = {envs} x {steps} = {samples}"
    if samples < least:
        yield Conflict(
            f"agent.algorithm.{name}",
            f"is too few to standardise advantages over: {arithmetic}",
            in_words([f"{least} or more"], "normalize_advantages", ["false"]),
            least,
            ("agent.algorithm.normalize_advantages", "env.num_envs"),
        )
    if samples > spec.env.max_frame:
        longest = spec.env.max_frame // envs
        yield Conflict(
            "env.max_frame",
            f"ends before the first update of {arithmetic} frames",
            in_words([f"{samples} or more"], name, [longest] if longest else []),
            samples,
            (f"agent.algorithm.{name}", "env.num_envs"),
        )


def rollouts(spec: SpecFields, algorithm: AdvantageAlgorithm | SarsaSpec) -> Iterable[Conflict]:
    """The budget holds one rollout, and that enough samples to standardise advantages over."""
    if algorithm.training_episodes is not None:
        return
    least = 2 if isinstance(algorithm, AdvantageAlgorithm) and algorithm.normalize_advantages else 1
    yield from _budget_of_rollouts(spec, "training_frequency", algorithm.training_frequency, least)


def episodes(spec: SpecFields, algorithm: EpisodicAlgorithm) -> Iterable[Conflict]:
    """The episodes of one update are shared equally among the environments, which one process plays."""
    if algorithm.training_episodes is None:
        return
    yield from _whole_shares(spec, "training_episodes", algorithm.training_episodes)
    if spec.meta.processes > 1:
        yield Conflict(
            "agent.algorithm.training_episodes",
            "does not fit meta.processes, which share out equal numbers of steps",
            "null; or meta.processes 1",
            None,
            ("meta.processes",),
        )


def reinforce_batch(spec: SpecFields, reinforce: ReinforceSpec) -> Iterable[Conflict]:
    """The episodes of one update are shared equally among the environments; or the budget holds its steps."""
    if reinforce.time_horizon is None:
        yield from _whole_shares(spec, "training_frequency", reinforce.training_frequency)
    else:
        yield from _budget_of_rollouts(spec, "time_horizon", reinforce.time_horizon)


def training_rounds(spec: SpecFields, learner: DqnSpec | TwinAlgorithm) -> Iterable[Conflict]:
    """Training rounds follow steps of all environments, and begin within the budget."""
    envs, frequency = spec.env.num_envs, learner.training_frequency
    if frequency < envs:
        yield Conflict(
            "agent.algorithm.training_frequency",
            f"is less than one step of all environments plays: num_envs = {envs}",
            f"{envs} or more; or env.num_envs {frequency} or less",
            envs,
            ("env.num_envs",),
        )
    if learner.training_start >= spec.env.max_frame:
        yield Conflict(
            "agent.algorithm.training_start",
            f"leaves nothing to train on: env.max_frame = {spec.env.max_frame}",
            f"below {spec.env.max_frame}; or env.max_frame above {learner.training_start}",
            others=("env.max_frame",),
        )


def _whole_shares(spec: SpecFields, name: str, count: int) -> Iterable[Conflict]:
    envs = spec.env.num_envs
    if count % envs:
        shares = near_multiples(envs, count, most=1_000_000)
        yield Conflict(
            f"agent.algorithm.{name}",
            f"is not a multiple of num_envs = {envs}",
            in_words(shares, "env.num_envs", near_divisors(count, envs)),
            closest(shares, count),
            ("env.num_envs",),
        )


def replay_batch(spec: SpecFields, learner: Algorithm) -> Iterable[Conflict]:
    """The memory holds a batch."""
    memory = spec.agent.memory
    if memory is not None and memory.batch_size > memory.max_size:
        yield Conflict(
            "agent.memory.batch_size",
            f"is more than the memory holds: max_size = {memory.max_size}",
            f"{memory.max_size} or less; or max_size {memory.batch_size} or more",
            memory.max_size,
            ("agent.memory.max_size",),
        )


def replay_size(spec: SpecFields, learner: DqnSpec | TwinAlgorithm) -> Iterable[Conflict]:
    """The memory holds a step of every environment and a batch, and has one when training starts."""
    memory, envs = spec.agent.memory, spec.env.num_envs
    if memory is None:
        return
    yield from replay_batch(spec, learner)
    if memory.max_size < envs:
        yield Conflict(
            "agent.memory.max_size",
            f"is less than one step adds: num_envs = {envs}",
            f"{envs} or more; or env.num_envs {memory.max_size} or less",
            envs,
            ("env.num_envs",),
        )
    if learner.training_start < memory.batch_size:
        yield Conflict(
            "agent.algorithm.training_start",
            f"comes before the memory holds one batch: batch_size = {memory.batch_size}",
            f"{memory.batch_size} or more; or memory.batch_size {learner.training_start} or less",
            memory.batch_size,
            ("agent.memory.batch_size",),
        )


def lookahead(spec: SpecFields, dqn: DqnSpec) -> Iterable[Conflict]:
    """Transitions wait for `n_step` steps, and the memory must have one batch of them when training starts."""
    memory, envs, start = spec.agent.memory, spec.env.num_envs, dqn.training_start
    if memory is None or start < memory.batch_size:
        return
    most = (start - memory.batch_size) // envs + 1
    if dqn.n_step > most:
        needed = memory.batch_size + (dqn.n_step - 1) * envs
        yield Conflict(
            "agent.algorithm.n_step",
            f"leaves less than one batch of {memory.batch_size} at training_start = {start}",
            f"{most} or less; or training_start {needed} or more",
            most,
            ("agent.algorithm.training_start", "agent.memory.batch_size"),
        )


def temperature(spec: SpecFields, learner: SoftAlgorithm) -> Iterable[Conflict]:
    """The temperature starts between its bounds; which may not cross follows from it."""
    start, least, most = learner.temperature, learner.temperature_min, learner.temperature_max
    if least is not None and start < least:
        yield Conflict(
            "agent.algorithm.temperature_min",
            f"is above the temperature at the start: temperature = {start:g}",
            f"{start:g} or less; or temperature {least:g} or more",
            start,
            ("agent.algorithm.temperature",),
        )
    if most is not None and start > most:
        yield Conflict(
            "agent.algorithm.temperature_max",
            f"is below the temperature at the start: temperature = {start:g}",
            f"{start:g} or more; or temperature {most:g} or less",
            start,
            ("agent.algorithm.temperature",),
        )


def unused_net(spec: SpecFields, algorithm: Algorithm) -> Iterable[Conflict]:
    """Nothing of a network matters to an algorithm that has none."""
    if spec.agent.net != type(spec.agent).model_fields["net"].get_default(call_default_factory=True):
        yield Conflict("agent.net", f"has no effect: {algorithm.name} has no network", "leave it out")


Check = Callable[[SpecFields, Any], Iterable[Conflict]]
CHECKS: dict[type[Algorithm], tuple[Check, ...]] = {
    EpisodicAlgorithm: (episodes,),
    AdvantageAlgorithm: (rollouts,),
    ProximalAlgorithm: (minibatches,),
    ImitatingAlgorithm: (replay_batch,),
    ReinforceSpec: (reinforce_batch,),
    SarsaSpec: (rollouts,),
    RandomSpec: (unused_net,),
    DqnSpec: (training_rounds, replay_size, lookahead),
    TwinAlgorithm: (training_rounds, replay_size),
    SoftAlgorithm: (temperature,),
    LanguageAlgorithm: (unused_net, *language.SHARED),
    VerifiedAlgorithm: language.CHECKS,
}
"""What is checked for each class of algorithms, and for those derived from it."""


def algorithm_conflicts(spec: SpecFields) -> list[Conflict]:
    """Where the settings of `spec` conflict under its algorithm."""
    algorithm = spec.agent.algorithm
    checks = [check for kind in reversed(type(algorithm).__mro__) for check in CHECKS.get(kind, ())]
    return [conflict for check in checks for conflict in check(spec, algorithm)]
