"""Whether this engine can run a spec: unsupported settings are refused before any work, never ignored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from gymnasium import Env

from operant.envs.check import check_env
from operant.envs.environment import Traits
from operant.envs.functional.find import steps_on_host, traits_of
from operant.envs.gym import observation_shape
from operant.envs.images import check_network
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.masks import offers_mask
from operant.errors import UsageError
from operant.spec.schedules import Linear, ScheduleSpec
from operant.spec.schema import Spec
from operant.spec.settings.algorithm import Algorithm
from operant.spec.settings.algorithms import ALGORITHMS, with_learner
from operant.spec.settings.memories import PrioritisedReplaySpec
from operant.spec.settings.nets import NETS, Net, with_layers
from operant.spec.settings.off_policy import CrossQSpec, DqnSpec, TwinAlgorithm
from operant.spec.settings.ppo import PpoSpec
from operant.spec.validation.cross_field import setting

OPTIMIZERS = ("adam", "adamw", "rmsprop", "sgd")
MOST_FRAMES = 2**31 - 1
OWN = "the compiled program steps its environments itself"
# For each setting the values that this engine has, and why it has no others.
ALWAYS: dict[str, tuple[tuple[Any, ...], str]] = {
    "agent.net.layer_norm": ((False,), "its layers have no norms"),
    "agent.net.optimizer.name": (OPTIMIZERS, "it has these optimizers only"),
    "agent.net.optimizer.scheduler": ((None,), "it has no schedulers of torch: use lr_end_fraction"),
    "agent.net.optimizer.amsgrad": ((False,), "its Adam is the plain one"),
    "agent.net.optimizer.centered": ((False,), "its RMSprop is the plain one"),
    "agent.net.optimizer.dampening": ((0.0,), "its momentum is the plain one"),
    "meta.processes": ((1,), "it shares work among devices: meta.devices"),
    "meta.compile": ((False,), "it is compiled always"),
}
COMPILED_ENVS = {
    "env.vectorization": (("auto",), OWN),
    "meta.threads": ((None,), "XLA shares the cores out itself"),
}
HOST_ENVS = {
    "meta.devices": ((1,), "environments that step on the host feed one device"),
}
REPLAYING = {
    "agent.memory.name": (("replay", "prioritised"), "it has these memories only"),
    "agent.memory.combined": ((False,), "it draws every transition of a batch"),
    "env.normalize_reward": ((False,), "it scales rewards of rollouts only: use clip_reward"),
}
OF_ALGORITHM: dict[type[Algorithm], dict[str, tuple[tuple[Any, ...], str]]] = {
    PpoSpec: {
        "agent.algorithm.training_episodes": ((None,), "its rollouts are of equal length"),
        "agent.algorithm.normalize_advantages": (("standardise", "none"), "it keeps no percentiles"),
        "agent.algorithm.symlog": ((False,), "its critic learns returns on a linear scale"),
    },
    DqnSpec: {
        **REPLAYING,
        "agent.algorithm.n_step": ((1,), "its targets look one step ahead"),
        "agent.algorithm.distributional": (("none",), "it learns means"),
        "agent.algorithm.exploration": (("epsilon_greedy",), "it explores by chance"),
    },
    TwinAlgorithm: REPLAYING,
}


def check_compatibility(spec: Spec) -> None:
    """`UsageError` for a setting or an environment that this engine cannot take, or a device that is not there."""
    # One after another: a later check may suppose what an earlier one refuses.
    for refusal in chain(
        unsupported(spec),
        host_incompatible(spec) if steps_on_host(spec.env) else incompatible(spec, traits_of(spec.env)),
        uneven_shares(spec),
        uneven_rounds(spec),
        untraceable(spec),
    ):
        raise refusal
    # The devices of other nodes cannot be seen from here; a session that does not find them says so.
    if (spec.meta.device != "cpu" or spec.meta.devices > 1) and spec.meta.launch.nodes == 1:
        from operant.engines.jax.platform import prepare_jax

        prepare_jax(spec)


def unsupported(spec: Spec) -> Iterator[UsageError]:
    """Settings that this engine does not support, each with the values that it does."""
    algorithm, net = spec.agent.algorithm, spec.agent.net
    available = {
        "agent.algorithm.name": (_names(algorithm, "LEARNERS", with_learner("jax")), "it has these algorithms only"),
        "agent.net.type": (_names(net, "LAYERS", _networks(spec)), "it has these networks only"),
    }
    of_algorithm = next((OF_ALGORITHM[each] for each in type(algorithm).__mro__ if each in OF_ALGORITHM), {})
    of_envs = HOST_ENVS if steps_on_host(spec.env) else COMPILED_ENVS
    for path, (known, why) in {**available, **ALWAYS, **of_envs, **of_algorithm}.items():
        value = setting(spec, path)
        if value not in known:
            offers = " or ".join(f"{path}={_written(each)}" for each in known)
            yield UsageError(
                f"{path}: the jax engine cannot take {_written(value)}: {why}",
                remedy=f"-s {offers}; or -s engine=torch, if the problem is one of Gymnasium's",
            )


def _networks(spec: Spec) -> dict[str, type[Net]]:
    """The built-in networks; images come from environments on the host only."""
    on_host = steps_on_host(spec.env)
    return {name: net for name, net in with_layers("jax").items() if on_host or not net.READS_IMAGES}


def _names(chosen: Algorithm | Net, trait: str, builtin: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that this engine has; one of somebody's own is added where it says so itself."""
    name = chosen.name if isinstance(chosen, Algorithm) else chosen.type
    is_own = name not in (*ALGORITHMS, *NETS)
    return tuple(dict.fromkeys([*builtin, *([name] if is_own and "jax" in getattr(chosen, trait) else [])]))


def incompatible(spec: Spec, traits: Traits) -> Iterator[UsageError]:
    """Algorithms and settings that the environment does not allow."""
    algorithm, name, env = spec.agent.algorithm, spec.agent.algorithm.name, spec.env
    if algorithm.ACTIONS == "discrete" and not traits.discrete:
        yield UsageError(
            f"agent.algorithm: {name} chooses among discrete actions, but {env.name} has real ones",
            remedy="-s agent.algorithm.name=ppo, or an environment with discrete actions",
        )
    if algorithm.ACTIONS == "continuous" and traits.discrete:
        yield UsageError(
            f"agent.algorithm: {name} chooses real actions, but those of {env.name} are discrete",
            remedy="-s agent.algorithm.name=sac, or an environment with continuous actions",
        )
    if algorithm.NEEDS_BOUNDS and not traits.bounded:
        yield UsageError(
            f"agent.algorithm: {name} needs bounds to act within, but those of {env.name} are infinite",
            remedy="-s agent.algorithm.name=ppo, or an environment with bounded actions",
        )
    if traits.masked and "jax" not in algorithm.TAKES_MASKS:
        yield UsageError(
            f"agent.algorithm: {env.name} says which actions are legal, and {name} of this engine does not listen",
            remedy="-s agent.algorithm.name=ppo, which does",
        )
    if algorithm.USES_MEMORY and env.max_frame > MOST_FRAMES:
        yield UsageError(
            f"env.max_frame: {name} of this engine counts frames in 32 bits, up to {MOST_FRAMES:,}",
            remedy=f"-s env.max_frame={MOST_FRAMES}",
        )
    if spec.agent.net.memory is not None and not steps_on_host(env):
        yield UsageError(
            f"agent.net.type: {spec.agent.net.type} is recurrent, and learns from environments on the host only",
            remedy="-s env.vectorization=serial, or -s agent.net.type=mlp",
        )
    if not traits.vectors and not steps_on_host(env):
        yield UsageError(f"env.name: the observations of {env.name} are no vectors", remedy="-s engine=torch")


def host_incompatible(spec: Spec) -> Iterator[UsageError]:
    """What an environment that steps on the host does not allow; it is made once to look at it."""
    made = check_env(spec.env)
    traits, shape = gymnasium_traits(made), observation_shape(made)
    made.close()
    check_network(spec, shape)
    yield from incompatible(spec, traits)
    algorithm = spec.agent.algorithm
    if spec.agent.net.READS_IMAGES and isinstance(algorithm, TwinAlgorithm):
        yield from unreadable(spec, traits)
    if isinstance(algorithm, PpoSpec) and algorithm.auto_scale and spec.agent.net.memory is not None:
        yield UsageError(
            "agent.algorithm.auto_scale: it would cut the sequences that a recurrent network learns from",
            remedy="-s agent.algorithm.auto_scale=false",
        )
    if not algorithm.learner("jax").ON_HOST:
        yield UsageError(
            f"agent.algorithm.name: {algorithm.name} learns in compiled environments only, and {spec.env.name} steps on"
            " the host",
            remedy="define explore_on_host and learn_on_host in its learner, or -s engine=torch",
        )


def unreadable(spec: Spec, traits: Traits) -> Iterator[UsageError]:
    """Critics that are asked about an action too cannot read images, nor can renormalized ones."""
    name, net = spec.agent.algorithm.name, spec.agent.net
    if isinstance(spec.agent.algorithm, CrossQSpec):
        yield UsageError(
            f"agent.net.type: {name} renormalizes perceptrons, and {net.type} is none",
            remedy="-s agent.algorithm.name=sac, which reads images",
        )
    if not traits.discrete:
        yield UsageError(
            f"agent.net.type: {name} reads images only where actions are discrete, and {spec.env.name} has real ones",
            remedy="-s agent.algorithm.name=ppo",
        )


def gymnasium_traits(env: Env) -> Traits:
    """What a learner must know of a Gymnasium environment."""
    space = ActionMap(env.action_space)
    discrete, is_vector = space.discrete, len(observation_shape(env)) == 1
    return Traits(discrete, discrete or bool(space.bounded.all()), discrete and offers_mask(env), is_vector)


def uneven_shares(spec: Spec) -> Iterator[UsageError]:
    """Every device has as many environments as the others, and as much of each minibatch."""
    devices, algorithm = spec.meta.devices, spec.agent.algorithm
    sizes = {"env.num_envs": spec.env.num_envs}
    if isinstance(algorithm, PpoSpec):
        sizes["agent.algorithm.minibatch_size"] = algorithm.scaled(spec.env.num_envs)[0]
    if spec.agent.memory is not None:
        sizes["agent.memory.batch_size"] = spec.agent.memory.batch_size
    if devices > 1 and isinstance(spec.agent.memory, PrioritisedReplaySpec):
        yield UsageError(
            f"agent.memory.name: {devices} devices sample their shares of replay apart, so uniformly",
            remedy="-s agent.memory.name=replay, or -s meta.devices=1",
        )
    for path, size in sizes.items():
        if size % devices:
            yield UsageError(
                f"meta.devices: {devices} devices cannot have equal shares of {path} = {size}",
                remedy=f"-s {path}={-(-size // devices) * devices}, or -s meta.devices={math.gcd(size, devices)}",
            )


def uneven_rounds(spec: Spec) -> Iterator[UsageError]:
    """Every round of gradient steps follows the same number of steps."""
    algorithm, envs = spec.agent.algorithm, spec.env.num_envs
    if isinstance(algorithm, DqnSpec | TwinAlgorithm) and algorithm.training_frequency % envs:
        even = -(-algorithm.training_frequency // envs) * envs
        yield UsageError(
            f"agent.algorithm.training_frequency: the jax engine needs a multiple of num_envs = {envs}",
            remedy=f"-s agent.algorithm.training_frequency={even}, or -s engine=torch",
        )


def untraceable(spec: Spec) -> Iterator[UsageError]:
    """Own schedules that compute with more than can be compiled."""
    for name, schedule in spec.agent.algorithm:
        if isinstance(schedule, ScheduleSpec) and not isinstance(schedule, Linear):
            import jax

            try:
                jax.eval_shape(schedule.at, jax.ShapeDtypeStruct((), "float32"))
            except Exception as problem:  # code of others may fail in any way
                cause = str(problem).partition("\n")[0]
                yield UsageError(
                    f"agent.algorithm.{name}: {schedule.name} cannot be traced by the jax engine: {cause}",
                    remedy="compute with operators and jax.numpy in `at`, or -s engine=torch",
                )


def _written(value: Any) -> str:
    """A value as YAML writes it; a whole section by its name."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(getattr(value, "name", value))
