"""What is planned: the work of a run, the machines, and who does what on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

GIGABIT = 1e9 / 8


@dataclass(frozen=True)
class Workload:
    """What a language spec asks for, round by round.

    A round learns from `prompts` groups of `group_size` completions in `updates` gradient steps, in passes of at most
    `pass_tokens` tokens. A generator writes `slots` completions side by side. Groups without signal are replaced in at
    most `resample_rounds` more rounds. There is a checkpoint every `save_rounds`; the whole run is `rounds`.
    """

    prompts: int
    group_size: int
    updates: int = 1
    staleness: int = 0
    slots: int = 256
    pass_tokens: int = 16_384
    resample_rounds: int = 0
    save_rounds: float = 1.0
    rounds: int = 1


@dataclass(frozen=True)
class Machines:
    """`nodes` of `gpus` each. Bandwidths are bytes per second: of a node's network, and between GPUs of one node.

    `cores` is for parts that compute on the cores of one machine: more of them than cores slow each other down, and
    so do `background` threads of other programs.
    A lost node, or another in its place, is back after `restart_seconds`.
    """

    nodes: int = 1
    gpus: int = 8
    bandwidth: float = 400 * GIGABIT
    gpu_bandwidth: float = 3600 * GIGABIT
    cores: float = math.inf
    background: float = 0.0
    restart_seconds: float = 300.0
    price: float | None = None

    @property
    def all_gpus(self) -> int:
        """GPUs of all nodes."""
        return self.nodes * self.gpus


@dataclass(frozen=True)
class Split:
    """Who does what: processes that train one model, generators of `generator_gpus` each, and verifiers.

    Without generators of their own the trainers generate too, by turns; that is `colocated`, and always synchronous.
    """

    trainers: int
    generators: int
    verifiers: int
    generator_gpus: int = 1

    @property
    def colocated(self) -> bool:
        """Whether the trainers generate."""
        return self.generators == 0

    @property
    def supported(self) -> bool:
        """Whether this version of Operant runs it: beside generators there is one process that trains."""
        return self.colocated or self.trainers == 1

    def node_of(self, generator: int, gpus: int) -> int:
        """The node that a generator is on; trainers have the first GPUs."""
        return (generator if self.colocated else self.trainers + generator * self.generator_gpus) // gpus

    def settings(self, staleness: int) -> list[str]:
        """The settings of a spec that ask for it."""
        if self.colocated:
            return [f"meta.processes={self.trainers}", "agent.algorithm.staleness=0"]
        own = [f"meta.ray.generators={self.generators}", f"meta.ray.generator_gpus={self.generator_gpus}"]
        return [
            "meta.cluster=ray",
            *own,
            f"env.text.workers={self.verifiers}",
            f"agent.algorithm.staleness={staleness}",
        ]

    def __str__(self) -> str:
        """`16 trainers + 496 generators, 8 verifiers`"""
        if self.colocated:
            return f"{self.trainers} train and generate by turns, {self.verifiers} verifiers"
        return f"{self.trainers} trainers + {self.generators} generators, {self.verifiers} verifiers"
