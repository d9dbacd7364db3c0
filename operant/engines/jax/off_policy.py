"""What the learners with a replay share: their sizes, their optimiser, and the arithmetic of their gradient steps."""

from __future__ import annotations

import jax.numpy as jnp

from operant.engines.jax.learner import Learner
from operant.engines.jax.optimise import Optimiser
from operant.envs.functional import FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec
from operant.spec.settings.off_policy import SacSpec


class OffPolicy(Learner):
    """A learner with a replay (abstract).

    A round has `steps` steps of every environment. The ring holds `capacity` steps of each, and
    `size` transitions of a batch are on each device.
    """

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        spec = self.spec
        memory, devices, settings = spec.agent.memory, spec.meta.devices, spec.agent.algorithm
        assert isinstance(settings, DqnSpec | SacSpec)
        assert memory is not None, "the schema gives every off-policy algorithm a memory"
        self.net, self.memory = spec.agent.net, memory
        self.start, self.iterations = settings.training_start, settings.training_iter
        self.frames = settings.training_frequency
        self.local = spec.env.num_envs // devices
        self.steps = self.frames // spec.env.num_envs
        self.capacity = memory.max_size // spec.env.num_envs
        self.size = memory.batch_size // devices
        self.optimiser = Optimiser(self.net.optimizer)
        self.dtype, self.storage = jnp.dtype(spec.meta.precision), jnp.dtype(spec.meta.storage)

    def arithmetic(self) -> tuple[list[str], int]:
        batch = self.memory.batch_size
        steps = max(0, self.spec.env.max_frame - self.start) // self.frames * self.iterations
        ratio = self.iterations * batch / self.frames
        return [
            f"{steps:,} gradient steps of {batch} from frame {self.start:,} on,"
            f" {self.iterations} every {self.frames} frames",
            f"each transition is learnt from about {ratio:g} times; replay of {self.memory.max_size:,} transitions",
        ], steps
