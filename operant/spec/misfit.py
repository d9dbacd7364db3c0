"""Settings that are each valid but do not fit together, with the nearest values that would.

Everything here is arithmetic on a spec that has already passed field by field. A misfit names
one setting to blame, says why in numbers, and offers values that fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from operant.spec.nets import SCALED_INITS

if TYPE_CHECKING:
    from operant.spec.algorithms import DqnSpec
    from operant.spec.off_policy import SoftAlgorithm, TwinAlgorithm
    from operant.spec.on_policy import AdvantageAlgorithm, ReinforceSpec
    from operant.spec.optimizers import OptimizerSpec
    from operant.spec.proximal import ProximalAlgorithm
    from operant.spec.schema import Spec

    Replaying = DqnSpec | TwinAlgorithm

MAX_SEED = 2**31 - 1
IN_PROCESSES = ("ppo", "a2c")
ROLLOUT = ("agent.algorithm.time_horizon", "env.num_envs")


@dataclass(frozen=True)
class Misfit:
    """One setting that does not fit the others.

    `problem` continues the words "`path` = value"; `fits` says what would do; `mend` is the
    value of `path` to try first, or None when no value of that setting alone would do; `others`
    are the settings it does not fit, which a person may have written instead of `path`.
    """

    path: str
    problem: str
    fits: str
    mend: Any = None
    others: tuple[str, ...] = ()


def find_misfits(spec: Spec) -> list[Misfit]:
    """Every misfit of a spec; an empty list when it can run."""
    return [
        *_inert_settings(spec),
        *_unused_memory(spec),
        *_untrained_memory(spec),
        *_seed_range(spec),
        *_process_shares(spec),
        *_scaled_twice(spec),
        *_lookahead_of_sgd(spec.agent.net.optimizer),
        *_changing_batches(spec),
        *spec.agent.algorithm.misfits(spec),
    ]


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
            _nearest(sizes, "time_horizon", near_multiples(step, horizon, most=1_000_000)),
            closest(sizes, size),
            ROLLOUT,
        )
    elif size < least:
        sizes = near_divisors(samples, size, least)
        yield Misfit(
            "agent.algorithm.minibatch_size",
            "is too few to standardise advantages over",
            _nearest(sizes, "normalize_advantages", ["none"]),
            closest(sizes, size),
            ("agent.algorithm.normalize_advantages",),
        )
    if samples > spec.env.max_frame:
        longest = spec.env.max_frame // envs // step * step
        horizons = [longest] if longest else []
        yield Misfit(
            "env.max_frame",
            f"ends before the first update of {arithmetic} frames",
            _nearest([f"{samples} or more"], "time_horizon", horizons),
            samples,
            ROLLOUT,
        )


def _cut_sequences(spec: Spec, ppo: ProximalAlgorithm, cell: str) -> Misfit:
    """A network that remembers learns from what an environment played in one update, never from a part of it."""
    envs, horizon, size = spec.env.num_envs, ppo.time_horizon, ppo.minibatch_size
    sizes = _neighbours([horizon * share for share in divisors(envs)], size)
    horizons = _neighbours(sorted(size // share for share in divisors(envs) if size % share == 0), horizon)
    return Misfit(
        "agent.algorithm.minibatch_size",
        f"is no equal share of {envs} whole sequences of {horizon} steps (num_envs x time_horizon), as {cell} needs",
        _nearest(sizes, "time_horizon", horizons),
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
            _nearest([f"{least} or more"], "normalize_advantages", ["false"]),
            least,
            ("agent.algorithm.normalize_advantages", "env.num_envs"),
        )
    if samples > spec.env.max_frame:
        longest = spec.env.max_frame // envs
        yield Misfit(
            "env.max_frame",
            f"ends before the first update of {arithmetic} frames",
            _nearest([f"{samples} or more"], "training_frequency", [longest] if longest else []),
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
            _nearest(rounds, "env.num_envs", near_divisors(frequency, envs)),
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


def _inert_settings(spec: Spec) -> Iterable[Misfit]:
    """A setting that was changed but that nothing would read is a mistake, not a preference."""
    reasons = dict(spec.agent.algorithm.inert())
    if not spec.env.normalize_obs:
        reasons["env.clip_obs"] = "env.normalize_obs is false"
    reasons |= {f"agent.net.optimizer.{key}": why for key, why in spec.agent.net.optimizer.inert().items()}
    if spec.agent.net.init not in SCALED_INITS:
        why = f"{spec.agent.net.init} weights have no gain"
        reasons |= dict.fromkeys(("agent.net.actor_gain", "agent.net.critic_gain"), why)
    if spec.agent.net.READS_IMAGES and spec.agent.net.memory is None:
        reasons |= dict.fromkeys(("agent.net.layers", "agent.net.cell"), "agent.net.recurrent is null")
    for path, why in reasons.items():
        if setting(spec, path) != _default_of(spec, path):
            yield Misfit(path, f"has no effect: {why}", "leave it out")


def _unused_memory(spec: Spec) -> Iterable[Misfit]:
    algorithm = spec.agent.algorithm
    if spec.agent.memory is not None and not algorithm.USES_MEMORY:
        yield Misfit("agent.memory", f"has no effect: {algorithm.name} learns on-policy", "leave it out")


def unused_net_misfits(spec: Spec) -> Iterable[Misfit]:
    """Nothing of a network matters to an algorithm that has none."""
    if spec.agent.net != type(spec.agent).model_fields["net"].get_default(call_default_factory=True):
        yield Misfit("agent.net", f"has no effect: {spec.agent.algorithm.name} has no network", "leave it out")


def _scaled_twice(spec: Spec) -> Iterable[Misfit]:
    """Statistics of pixels would turn bytes into floats, which networks of convolutions scale as bytes."""
    net = spec.agent.net
    if net.READS_IMAGES and spec.env.normalize_obs:
        yield Misfit(
            "env.normalize_obs",
            f"does not fit: {net.type} scales pixels itself",
            "leave it out; or agent.net.type mlp",
            False,
            ("agent.net.type",),
        )


def _untrained_memory(spec: Spec) -> Iterable[Misfit]:
    algorithm, net = spec.agent.algorithm, spec.agent.net
    if net.memory and not algorithm.TAKES_SEQUENCES:
        path, mend = ("agent.net.recurrent", None) if net.READS_IMAGES else ("agent.net.type", "mlp")
        problem = f"does not fit {algorithm.name}, which learns from single steps and not from sequences"
        fits = f"{mend or 'null'}; or agent.algorithm.name ppo or a2c"
        yield Misfit(path, problem, fits, mend, ("agent.algorithm.name",))


def _seed_range(spec: Spec) -> Iterable[Misfit]:
    last = spec.meta.seed + spec.meta.max_session - 1
    if last > MAX_SEED:
        most = MAX_SEED - spec.meta.max_session + 1
        problem = f"gives the last session the seed {last}, above {MAX_SEED}"
        yield Misfit("meta.seed", problem, f"{most} or less", most, ("meta.max_session",))


def _process_shares(spec: Spec) -> Iterable[Misfit]:
    """Processes of one session have equal shares of the environments and of every minibatch."""
    processes, algorithm = spec.meta.processes, spec.agent.algorithm
    if processes == 1:
        return
    if algorithm.name not in IN_PROCESSES:
        problem = f"has no effect: {algorithm.name} learns in one process, only {' and '.join(IN_PROCESSES)} share"
        yield Misfit("meta.processes", problem, "leave it out", 1, ("agent.algorithm.name",))
        return
    if spec.agent.net.memory:
        problem = f"does not fit {spec.agent.net.type}, whose sequences are learnt from in one process"
        yield Misfit("meta.processes", problem, "leave it out", 1, ("agent.net.type",))
        return
    sizes = {"env.num_envs": spec.env.num_envs}
    minibatch = getattr(algorithm, "minibatch_size", None)
    if minibatch is not None:
        sizes["agent.algorithm.minibatch_size"] = minibatch
    common = math.gcd(*sizes.values())
    for path, size in sizes.items():
        if size % processes:
            fitting = near_divisors(common, processes)
            name = path.rpartition(".")[2]
            more = near_multiples(processes, size, most=65_536)
            problem = f"does not divide {name} = {size}"
            yield Misfit("meta.processes", problem, _nearest(fitting, path, more), closest(fitting, processes), (path,))


def _lookahead_of_sgd(optimizer: OptimizerSpec) -> Iterable[Misfit]:
    """Nesterov's momentum is a form of momentum, and has no dampened one."""
    path = "agent.net.optimizer.nesterov"
    if optimizer.nesterov and optimizer.name == "sgd" and (optimizer.momentum == 0 or optimizer.dampening > 0):
        others = ("agent.net.optimizer.momentum", "agent.net.optimizer.dampening")
        yield Misfit(path, "needs momentum above 0 and dampening 0", "false; or momentum 0.9", False, others)


def _changing_batches(spec: Spec) -> Iterable[Misfit]:
    """A compiled net is compiled for the sizes of its batches, so these may not change all the time."""
    name = spec.agent.algorithm.name
    if spec.meta.compile and name in ("reinforce", "sarsa"):
        problem = f"would compile again and again: the batches of {name} differ in size"
        yield Misfit("meta.compile", problem, "leave it out", False)
    elif spec.meta.compile and name == "crossq":
        problem = "would compile again and again: the limits of crossq's renormalisation move"
        yield Misfit("meta.compile", problem, "leave it out", False)
    elif spec.meta.compile and spec.agent.net.memory:
        problem = "would compile again and again: sequences are cut where episodes end"
        yield Misfit("meta.compile", problem, "leave it out", False, ("agent.net.type",))


def setting(spec: Spec, path: str) -> Any:
    """The value at a dotted path of a valid spec."""
    return reduce(getattr, path.split("."), spec)


def _default_of(spec: Spec, path: str) -> Any:
    section, _, key = path.rpartition(".")
    return type(setting(spec, section)).model_fields[key].default


def near_divisors(total: int, wanted: int, least: int = 1) -> list[int]:
    """The divisors of `total` next to `wanted`, below and above; only those of at least `least`."""
    return _neighbours([d for d in divisors(total) if d >= least and d != wanted], wanted)


def divisors(total: int) -> list[int]:
    """Every divisor of `total`, the smallest first."""
    small = [n for n in range(1, math.isqrt(total) + 1) if total % n == 0]
    return sorted({*small, *(total // n for n in small)})


def near_multiples(step: int, wanted: int, most: int) -> list[int]:
    """The multiples of `step` next to `wanted`, below and above; none beyond `most`."""
    below = wanted // step * step
    return [n for n in (below, below + step) if 0 < n <= most and n != wanted]


def closest(values: Sequence[int], wanted: int) -> int | None:
    """The value nearest to `wanted`; the smaller of two that are equally near."""
    return min(values, key=lambda value: (abs(value - wanted), value), default=None)


def _neighbours(ordered: Sequence[int], wanted: int) -> list[int]:
    below = [value for value in ordered if value < wanted][-1:]
    return below + [value for value in ordered if value > wanted][:1]


def _nearest(own: Sequence[object], other: str, others: Sequence[object]) -> str:
    """Values of the setting itself, and of another that would do as well; either may be empty."""
    parts = [" or ".join(map(str, own))] if own else []
    if others:
        parts.append(f"or {other} " + " or ".join(map(str, others)) if own else f"{other} {others[0]}")
    return "nearest that fit: " + "; ".join(parts)
