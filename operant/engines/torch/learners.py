"""From a spec to a learner or an actor; the settings class of an algorithm names its learner."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

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
    learner: Learner = spec.agent.algorithm.learner("torch")(spec, seeds, device)
    if spec.meta.compile or spec.meta.precision != "float32":
        accelerate(learner, spec.meta, device)
    return learner


def load_actor(spec: Spec, checkpoint: Path) -> Actor:
    """The policy of a checkpoint, on the CPU."""
    return load_actor_and_net(spec, checkpoint, torch.device("cpu"))[0]


def load_actor_and_net(spec: Spec, checkpoint: Path, device: torch.device) -> tuple[Actor, nn.Module]:
    """The policy of a checkpoint, and the network that it asks."""
    learner = spec.agent.algorithm.learner("torch")
    env = make_env(spec.env)
    shape, actions = observation_shape(env), ActionMap(env.action_space)
    env.close()
    net: nn.Module = learner.build_net(spec, shape, actions).to(device)
    actor: Actor = learner.build_actor(spec, net, shape, actions)
    read_policy(checkpoint, {"net": Weights(net), "obs": actor.obs_normalizer})
    return actor, net
