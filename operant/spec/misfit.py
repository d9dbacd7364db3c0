"""Settings that are each valid but do not fit together, with the nearest values that would.

Everything here is arithmetic on a spec that has already passed field by field. A misfit names
one setting to blame, says why in numbers, and offers values that fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from operant.spec.fitting import closest, in_words, near_divisors, near_multiples
from operant.spec.nets import SCALED_INITS

if TYPE_CHECKING:
    from operant.spec.optimizers import OptimizerSpec
    from operant.spec.schema import Spec

MAX_SEED = 2**31 - 1
IN_PROCESSES = ("ppo", "a2c")


@dataclass(frozen=True)
class Misfit:
    """One setting that does not fit the others.

    `problem` continues the words "`path` = value"; `fits` says what would do; `mend` is the
    value of `path` to try first, or None when no value of that setting alone would do; `others`
    are the settings it does not fit, which a person may have written instead of `path`. `past` says
    that runs were once made with it: these can still be read, and go on as they began.
    """

    path: str
    problem: str
    fits: str
    mend: Any = None
    others: tuple[str, ...] = ()
    past: bool = False


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
        *_words_and_games(spec),
        *spec.agent.algorithm.misfits(spec),
    ]


def _inert_settings(spec: Spec) -> Iterable[Misfit]:
    """A setting that was changed but that nothing would read is a mistake, not a preference."""
    reasons = dict(spec.agent.algorithm.inert())
    if not spec.env.normalize_obs:
        reasons["env.clip_obs"] = "env.normalize_obs is false"
    reasons |= {f"agent.net.optimizer.{key}": why for key, why in spec.agent.net.optimizer.inert().items()}
    if spec.agent.net.init not in SCALED_INITS:
        why = f"{spec.agent.net.init} weights have no gain"
        reasons |= dict.fromkeys(("agent.net.actor_gain", "agent.net.critic_gain"), why)
    if not spec.agent.net.hidden:
        reasons["agent.net.layer_norm"] = "agent.net.hidden is empty"
    if spec.agent.net.READS_IMAGES and spec.agent.net.memory is None:
        reasons |= dict.fromkeys(("agent.net.layers", "agent.net.cell"), "agent.net.recurrent is null")
    if spec.agent.model is not None:
        inert = spec.agent.model.optimizer.inert()
        reasons |= {f"agent.model.optimizer.{key}": why for key, why in inert.items()}
        if spec.agent.model.generator != "openai":
            reasons["agent.model.url"] = "agent.model.generator is not openai"
        if spec.agent.model.generator != "vllm":
            settings = (f"agent.model.vllm.{key}" for key in type(spec.agent.model.vllm).model_fields)
            reasons |= dict.fromkeys(settings, "agent.model.generator is not vllm")
    if spec.engine_name != "jax":
        why = f"it is of the jax engine, and {spec.engine_name} runs this"
        scale = ("agent.algorithm.auto_scale",) if hasattr(spec.agent.algorithm, "auto_scale") else ()
        reasons |= dict.fromkeys(("meta.devices", "meta.storage", *scale), why)
    reasons |= _unused_cluster(spec)
    for path, why in reasons.items():
        if setting(spec, path) != _default_of(spec, path):
            yield Misfit(path, f"has no effect: {why}", "leave it out")


def _unused_cluster(spec: Spec) -> dict[str, str]:
    """Settings of Ray that nothing would read, each with the reason."""
    if spec.engine_name != "language":
        why = f"it is of the language engine, and {spec.engine_name} runs this"
        return dict.fromkeys(("meta.cluster", "meta.ray", "meta.stall_seconds"), why)
    if spec.meta.cluster != "ray":
        return {"meta.ray": "meta.cluster is not ray"}
    return {"meta.ray.store_mb": "the cluster at meta.ray.address has its own"} if spec.meta.ray.address else {}


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
    episodes = "meta.eval_episodes" if spec.meta.eval_episodes > spec.meta.final_episodes else "meta.final_episodes"
    count = max(spec.meta.eval_episodes, spec.meta.final_episodes)
    if spec.meta.eval_seed + count - 1 > MAX_SEED:
        most = MAX_SEED - count + 1
        problem = f"gives the last of {count} evaluation episodes the seed {spec.meta.eval_seed + count - 1}"
        yield Misfit("meta.eval_seed", f"{problem}, above {MAX_SEED}", f"{most} or less", most, (episodes,))


def _process_shares(spec: Spec) -> Iterable[Misfit]:
    """Processes of one session have equal shares of the environments and of every minibatch."""
    processes, algorithm = spec.meta.processes, spec.agent.algorithm
    if processes == 1:
        return
    if algorithm.ENGINE == "language":
        if spec.agent.model is not None and spec.agent.model.lora is not None:
            problem = "does not fit agent.model.lora: adapters are small enough to be trained in one process"
            yield Misfit("meta.processes", problem, "1; or leave out agent.model.lora", 1, ("agent.model.lora",))
        if spec.agent.model is not None and spec.agent.model.generator == "vllm":
            problem = "does not fit agent.model.generator vllm, which runs inside the one process that trains"
            fits = "1; or agent.model.generator torch"
            yield Misfit("meta.processes", problem, fits, 1, ("agent.model.generator",))
        return
    if algorithm.name not in IN_PROCESSES:
        sharing = f"{', '.join(IN_PROCESSES)} and language models"
        problem = f"has no effect: {algorithm.name} learns in one process, only {sharing} share"
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
            yield Misfit("meta.processes", problem, in_words(fitting, path, more), closest(fitting, processes), (path,))


def _words_and_games(spec: Spec) -> Iterable[Misfit]:
    """Language algorithms train language models on tasks in words, and no other algorithm does."""
    algorithm, speaks = spec.agent.algorithm, spec.agent.algorithm.ENGINE == "language"
    if (spec.engine == "language") != speaks and spec.engine != "auto":
        fits = "auto" if speaks else f"auto; or agent.algorithm.name grpo, which {spec.engine} runs"
        yield Misfit("engine", f"does not run {algorithm.name}", fits, "auto", ("agent.algorithm.name",))
    if speaks:
        return
    for path in ("agent.model", "env.text"):
        if setting(spec, path) is not None:
            problem = f"has no effect: {algorithm.name} trains no language model"
            yield Misfit(path, problem, "leave it out; or agent.algorithm.name grpo", None, ("agent.algorithm.name",))


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
    return type(setting(spec, section)).model_fields[key].get_default(call_default_factory=True)
