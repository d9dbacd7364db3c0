"""Which way of stepping the copies of an environment suits it, here and now.

Every way gives the same bits, so the choice may depend on the machine and differ when a run is resumed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from operant.envs.cores import CORES_VARIABLE
from operant.envs.find import find, plays_natively

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

# A step of these takes 50 to 400 microseconds, and the way to another process and back up to 100.
HEAVY_FAMILIES = ("gymnasium.envs.mujoco", "gymnasium.envs.box2d")
LEAST_EACH = 8
NATIVE = "native"


@dataclass(frozen=True)
class Way:
    """How worlds are stepped, in how many processes."""

    name: str
    processes: int = 1

    def words(self, num: int) -> str:
        """The same for a person, of `num` environments."""
        if num == 1:
            return "1 environment"
        if self.name == NATIVE:
            return f"{num} games played side by side in threads of the emulator"
        where = "one after another" if self.processes == 1 else f"side by side in {self.processes} processes"
        return f"{num} environments stepped {where}"

    def __str__(self) -> str:
        return self.name if self.processes == 1 else f"{self.name} ({self.processes})"


def choose(spec: EnvSpec, num: int, brief: bool = False) -> Way:
    """The way that the spec asks for; on `auto`, processes where each would have enough to do. Atari has its own way.

    Play that is `brief` would end before its processes had started.
    """
    if plays_natively(spec):
        return Way(NATIVE)
    if spec.vectorization == "serial" or num == 1 or brief:
        return Way("serial")
    cores = cores_here()
    if spec.vectorization == "processes":
        return Way("processes", min(num, max(cores, 2)))
    is_heavy = str(find(spec.name).entry_point).startswith(HEAVY_FAMILIES)
    processes = min(cores, num // LEAST_EACH) if is_heavy else 1
    return Way("processes", processes) if processes > 1 else Way("serial")


def cores_here() -> int:
    """Cores that this session may use: its share as the launcher counted it, else all that the process may run on."""
    share = os.environ.get(CORES_VARIABLE, "")
    if share.isdigit():
        return max(1, int(share))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
