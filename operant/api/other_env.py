"""A policy in another environment than the one that it was trained in, with the same observations and actions.

The policy plays by its own weights and statistics of observations; all else is the other environment's: rewards, time
limit, and what its actions do. It is made as its name alone says: `env.kwargs` and `env.max_t` are of the environment
that the run was trained in.
"""

from __future__ import annotations

from dataclasses import replace

from operant.engines import require_packages
from operant.envs.functional.find import in_gymnasium, steps_on_host
from operant.envs.spaces import Spaces, only_in_jax, spaces_of
from operant.errors import UsageError
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.spec.settings.sections import EnvSpec
from operant.spec.stored import stored

CHANGED = {"name", "kwargs", "max_t", "vectorization"}


def in_environment(run: Run, name: str) -> Run:
    """The run as if it had been trained in the environment `name`, for an engine to play its checkpoints there.

    Gymnasium's form of it, which published scores are of, where there is one. Nothing is written. `UsageError` where
    the policy cannot play there.
    """
    spec = stored(run.spec)
    engine = spec.engine_name
    if engine == "language":
        raise _refusal(spec, name, "it is a language model, which answers tasks", "operant eval RUN --tasks NAME")
    require_packages(spec)
    try:
        other = _other(spec, name)
        # A task of MJX has the spaces of Gymnasium's, for which MJX need not be here.
        ours, theirs = spaces_of(in_gymnasium(spec.env), engine), spaces_of(other, engine)
    except UsageError as problem:
        why = problem.cause.removeprefix("env.name: ").removeprefix(f"{name}: ")
        raise _refusal(spec, name, why, problem.remedy) from problem
    why = ours.difference(theirs) or _unplayable(spec, other, theirs)
    if why is not None:
        raise _refusal(spec, name, why)
    env = {**run.spec["env"], **other.model_dump(include=CHANGED)}
    # With `engine: auto` the environment would choose another one.
    return replace(run, spec={**run.spec, "engine": engine, "env": env})


def _other(spec: Spec, name: str) -> EnvSpec:
    in_jax = only_in_jax(name)
    if in_jax and spec.engine_name != "jax":
        raise UsageError(f"it is compiled by the jax engine, and the policy is of the {spec.engine_name} engine")
    form = "auto" if in_jax else "serial"
    return spec.env.model_copy(update={"name": name, "kwargs": {}, "max_t": None, "vectorization": form})


def _unplayable(spec: Spec, other: EnvSpec, spaces: Spaces) -> str | None:
    """What keeps a policy from playing where observations and actions are its own."""
    algorithm, engine = spec.agent.algorithm, spec.engine_name
    if spaces.masked and engine not in algorithm.TAKES_MASKS:
        return f"it says which actions are legal, and {algorithm.name} does not listen"
    if engine != "jax":
        return None
    if not steps_on_host(other) and spec.agent.net.memory is not None:
        return f"it is compiled, and {spec.agent.net.type} is recurrent, which plays on the host only"
    if steps_on_host(other) and not algorithm.learner(engine).ON_HOST:
        return f"it steps on the host, and {algorithm.name} plays in compiled environments only"
    return None


def _refusal(spec: Spec, name: str, why: str, remedy: str | None = None) -> UsageError:
    return UsageError(f"a policy of {spec.env.name} cannot play in {name}: {why}", remedy=remedy)
