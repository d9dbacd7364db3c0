"""Cross-field validation: settings that are each valid but not together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

from operant.spec.settings.algorithms import ALGORITHMS
from operant.spec.settings.nets import SCALED_INITS
from operant.spec.settings.on_policy import AdvantageAlgorithm
from operant.spec.settings.optimizers import OptimizerSpec
from operant.spec.settings.ppo import PpoSpec, ProximalAlgorithm
from operant.spec.settings.sections import MAX_ENVS, MAX_SEED, SpecFields
from operant.spec.validation.algorithms import algorithm_conflicts
from operant.spec.validation.conflict import Conflict, closest, in_words, near_divisors, near_multiples
from operant.spec.validation.schedules import schedule_conflicts


def find_conflicts(spec: SpecFields) -> list[Conflict]:
    """Every conflict of a spec; an empty list when it can run."""
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
        *schedule_conflicts(spec),
        *_unscored_rung(spec),
        *algorithm_conflicts(spec),
    ]


def _inert_settings(spec: SpecFields) -> Iterable[Conflict]:
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
    if spec.agent.net.shared and isinstance(spec.agent.algorithm, AdvantageAlgorithm | ProximalAlgorithm):
        reasons["agent.algorithm.critic_hidden"] = "agent.net.shared is true"
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
        reasons |= dict.fromkeys(("meta.devices", "meta.storage", "meta.search_resources.lanes", *scale), why)
    if spec.engine_name != "jax" or not isinstance(spec.agent.algorithm, PpoSpec):
        reasons["env.reward_scale"] = "only ppo of the jax engine multiplies rewards by it"
    reasons |= _unused_cluster(spec)
    for path, why in reasons.items():
        if setting(spec, path) != _default_of(spec, path):
            yield Conflict(path, f"has no effect: {why}", "leave it out")


def _unused_cluster(spec: SpecFields) -> dict[str, str]:
    """Settings of Ray that nothing would read, each with the reason."""
    if spec.engine_name != "language":
        why = f"it is of the language engine, and {spec.engine_name} runs this"
        return dict.fromkeys(("meta.cluster", "meta.ray", "meta.stall_seconds"), why)
    if spec.meta.cluster != "ray":
        return {"meta.ray": "meta.cluster is not ray"}
    return {"meta.ray.store_mb": "the cluster at meta.ray.address has its own"} if spec.meta.ray.address else {}


def _unused_memory(spec: SpecFields) -> Iterable[Conflict]:
    algorithm = spec.agent.algorithm
    if spec.agent.memory is not None and not algorithm.USES_MEMORY:
        yield Conflict("agent.memory", f"has no effect: {algorithm.name} learns on-policy", "leave it out")


def _scaled_twice(spec: SpecFields) -> Iterable[Conflict]:
    """Statistics of pixels would turn bytes into floats, which networks of convolutions scale as bytes."""
    net = spec.agent.net
    if net.READS_IMAGES and spec.env.normalize_obs:
        yield Conflict(
            "env.normalize_obs",
            f"does not fit: {net.type} scales pixels itself",
            "leave it out; or agent.net.type mlp",
            False,
            ("agent.net.type",),
        )


def _untrained_memory(spec: SpecFields) -> Iterable[Conflict]:
    algorithm, net = spec.agent.algorithm, spec.agent.net
    if net.memory and not algorithm.TAKES_SEQUENCES:
        path, fix = ("agent.net.recurrent", None) if net.READS_IMAGES else ("agent.net.type", "mlp")
        reason = f"does not fit {algorithm.name}, which learns from single steps and not from sequences"
        valid = f"{fix or 'null'}; or agent.algorithm.name ppo or a2c"
        yield Conflict(path, reason, valid, fix, ("agent.algorithm.name",))


def _seed_range(spec: SpecFields) -> Iterable[Conflict]:
    last = spec.meta.seed + spec.meta.max_session - 1
    if last > MAX_SEED:
        most = MAX_SEED - spec.meta.max_session + 1
        reason = f"gives the last session the seed {last}, above {MAX_SEED}"
        yield Conflict("meta.seed", reason, f"{most} or less", most, ("meta.max_session",))
    episodes = "meta.eval_episodes" if spec.meta.eval_episodes > spec.meta.final_episodes else "meta.final_episodes"
    count = max(spec.meta.eval_episodes, spec.meta.final_episodes)
    if spec.meta.eval_seed + count - 1 > MAX_SEED:
        most = MAX_SEED - count + 1
        reason = f"gives the last of {count} evaluation episodes the seed {spec.meta.eval_seed + count - 1}"
        yield Conflict("meta.eval_seed", f"{reason}, above {MAX_SEED}", f"{most} or less", most, (episodes,))


def _unscored_rung(spec: SpecFields) -> Iterable[Conflict]:
    """A search judges trials at rungs by their last evaluation, so the first rung must come after the first one."""
    scheduler, every = spec.meta.search_scheduler, spec.meta.eval_frequency
    if spec.search is None or scheduler is None or len(scheduler.rungs(spec.env.max_frame)) == 1:
        return
    if scheduler.grace_period < every:
        path = "meta.search_scheduler.grace_period"
        reason = f"is below meta.eval_frequency = {every:,}, so trials would have no score at the first rung"
        valid = f"{every} or more; or meta.eval_frequency {scheduler.grace_period} or less"
        yield Conflict(path, reason, valid, every, ("meta.eval_frequency",))


def _process_shares(spec: SpecFields) -> Iterable[Conflict]:
    """Processes of one session have equal shares of the environments and of every minibatch."""
    processes, algorithm = spec.meta.processes, spec.agent.algorithm
    if processes == 1:
        return
    if algorithm.engine() == "language":
        if spec.agent.model is not None and spec.agent.model.lora is not None:
            reason = "does not fit agent.model.lora: adapters are small enough to be trained in one process"
            yield Conflict("meta.processes", reason, "1; or leave out agent.model.lora", 1, ("agent.model.lora",))
        if spec.agent.model is not None and spec.agent.model.generator == "vllm":
            reason = "does not fit agent.model.generator vllm, which runs inside the one process that trains"
            valid = "1; or agent.model.generator torch"
            yield Conflict("meta.processes", reason, valid, 1, ("agent.model.generator",))
        return
    if not algorithm.SHARES_PROCESSES:
        sharing = f"{', '.join(name for name, each in ALGORITHMS.items() if each.SHARES_PROCESSES)} and language models"
        reason = f"has no effect: {algorithm.name} learns in one process, only {sharing} share"
        yield Conflict("meta.processes", reason, "leave it out", 1, ("agent.algorithm.name",))
        return
    if spec.agent.net.memory:
        reason = f"does not fit {spec.agent.net.type}, whose sequences are learnt from in one process"
        yield Conflict("meta.processes", reason, "leave it out", 1, ("agent.net.type",))
        return
    sizes = {"env.num_envs": spec.env.num_envs}
    minibatch = getattr(algorithm, "minibatch_size", None)
    if minibatch is not None:
        sizes["agent.algorithm.minibatch_size"] = minibatch
    common = math.gcd(*sizes.values())
    for path, size in sizes.items():
        if size % processes:
            shares = near_divisors(common, processes)
            name = path.rpartition(".")[2]
            more = near_multiples(processes, size, most=MAX_ENVS)
            reason = f"does not divide {name} = {size}"
            yield Conflict("meta.processes", reason, in_words(shares, path, more), closest(shares, processes), (path,))


def _words_and_games(spec: SpecFields) -> Iterable[Conflict]:
    """Language algorithms train language models on language tasks, and no other algorithm does."""
    algorithm, speaks = spec.agent.algorithm, spec.agent.algorithm.engine() == "language"
    if (spec.engine == "language") != speaks and spec.engine != "auto":
        valid = "auto" if speaks else f"auto; or agent.algorithm.name grpo, which {spec.engine} runs"
        yield Conflict("engine", f"does not run {algorithm.name}", valid, "auto", ("agent.algorithm.name",))
    elif spec.engine != "auto" and spec.engine not in algorithm.LEARNERS and ALGORITHMS.is_own(algorithm.name):
        known = " or ".join(algorithm.LEARNERS)
        reason = f"has no learner of {algorithm.name}"
        yield Conflict("engine", reason, f"auto, or {known}", "auto", ("agent.algorithm.name",))
    if speaks:
        return
    for path in ("agent.model", "env.text"):
        if setting(spec, path) is not None:
            reason = f"has no effect: {algorithm.name} trains no language model"
            yield Conflict(path, reason, "leave it out; or agent.algorithm.name grpo", None, ("agent.algorithm.name",))


def _lookahead_of_sgd(optimizer: OptimizerSpec) -> Iterable[Conflict]:
    """Nesterov's momentum is a form of momentum, and has no dampened one."""
    path = "agent.net.optimizer.nesterov"
    if optimizer.nesterov and optimizer.name == "sgd" and (optimizer.momentum == 0 or optimizer.dampening > 0):
        others = ("agent.net.optimizer.momentum", "agent.net.optimizer.dampening")
        yield Conflict(path, "needs momentum above 0 and dampening 0", "false; or momentum 0.9", False, others)


def _changing_batches(spec: SpecFields) -> Iterable[Conflict]:
    """A compiled net is compiled for the sizes of its batches, so these may not change all the time."""
    if spec.meta.compile and spec.agent.algorithm.recompiles():
        reason = f"would compile again and again: {spec.agent.algorithm.recompiles()}"
        yield Conflict("meta.compile", reason, "leave it out", False)
    elif spec.meta.compile and spec.agent.net.memory:
        reason = "would compile again and again: sequences are cut where episodes end"
        yield Conflict("meta.compile", reason, "leave it out", False, ("agent.net.type",))


def setting(spec: SpecFields, path: str) -> Any:
    """The value at a dotted path of a valid spec."""
    return reduce(getattr, path.split("."), spec)


def _default_of(spec: SpecFields, path: str) -> Any:
    section, _, key = path.rpartition(".")
    return type(setting(spec, section)).model_fields[key].get_default(call_default_factory=True)
