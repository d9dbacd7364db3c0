"""From a spec to a learner or an actor: the one place that knows every algorithm of this engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch

from operant.engines.torch import (
    a2c,
    crossq,
    dqn,
    on_policy,
    ppo,
    q_learning,
    random,
    reinforce,
    sac,
    sarsa,
    sil,
    td3,
)
from operant.engines.torch.accelerate import accelerate
from operant.engines.torch.actor import Actor
from operant.engines.torch.checkpoint import Weights, read_policy
from operant.engines.torch.loop import Learner
from operant.envs.gym import make_env, observation_shape
from operant.envs.vector.actions import ActionMap
from operant.errors import UsageError
from operant.run.heap import keep_large_blocks
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

ALGORITHMS: dict[str, ModuleType] = {
    "ppo": on_policy,
    "dqn": q_learning,
    "a2c": on_policy,
    "reinforce": reinforce,
    "sac": sac,
    "sarsa": q_learning,
    "td3": td3,
    "crossq": sac,
    "random": random,
    "sil": on_policy,
    "ppo_sil": on_policy,
}
LEARNERS: dict[str, Callable[[Spec, Seeds, torch.device], Learner]] = {
    "ppo": ppo.Ppo,
    "dqn": dqn.Dqn,
    "a2c": a2c.A2c,
    "reinforce": reinforce.Reinforce,
    "sac": sac.Sac,
    "sarsa": sarsa.Sarsa,
    "td3": td3.Td3,
    "crossq": crossq.CrossQ,
    "random": random.Random,
    "sil": sil.Sil,
    "ppo_sil": sil.PpoSil,
}


def prepare_torch(spec: Spec, threads: int) -> torch.device:
    """Set what decides torch's speed and its last bits, and choose the device."""
    torch.set_num_threads(threads)
    # Adam's moments of unused weights decay to denormal numbers, whose arithmetic is ten times slower.
    torch.set_flush_denormal(True)
    if spec.agent.net.READS_IMAGES:
        keep_large_blocks()
    device = choose_device(spec)
    if device.type == "cuda":
        # The CPU kernels used here are deterministic as they are, and this call loads torch's compiler.
        torch.use_deterministic_algorithms(True, warn_only=True)
    return device


def choose_device(spec: Spec) -> torch.device:
    """The device that the spec asks for; refused if it is not there."""
    wanted, has_cuda = spec.meta.device, torch.cuda.is_available()
    if wanted == "cuda" and not has_cuda:
        raise UsageError("meta.device: cuda is asked for, but torch sees no CUDA device", remedy="-s meta.device=cpu")
    return torch.device("cuda" if wanted != "cpu" and has_cuda else "cpu")


def build_learner(spec: Spec, seeds: Seeds, device: torch.device) -> Learner:
    """A fresh learner for the spec's algorithm."""
    learner = LEARNERS[spec.agent.algorithm.name](spec, seeds, device)
    if spec.meta.compile or spec.meta.precision != "float32":
        accelerate(learner, spec.meta, device)
    return learner


def load_actor(spec: Spec, checkpoint: Path) -> Actor:
    """The policy of a checkpoint, on the CPU."""
    algorithm = ALGORITHMS[spec.agent.algorithm.name]
    env = make_env(spec.env)
    shape, actions = observation_shape(env), ActionMap(env.action_space)
    env.close()
    net = algorithm.build_net(spec, shape, actions)
    actor: Actor = algorithm.build_actor(spec, net, shape, actions)
    read_policy(checkpoint, {"net": Weights(net), "obs": actor.obs_normalizer})
    return actor
