"""Which backend steps a vector env: in this process, in subprocesses, or natively.

Every backend gives the same bits, so the choice may depend on the machine and differ when a run is resumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operant.envs.cores import cores_here
from operant.envs.find import find, plays_natively

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

# A step of these takes 50 to 400 microseconds, and a round trip to another process up to 100.
HEAVY_FAMILIES = ("gymnasium.envs.mujoco", "gymnasium.envs.box2d")
LEAST_EACH = 8
NATIVE = "native"


@dataclass(frozen=True)
class Backend:
    """How the environments of a vector env are stepped, and in how many processes."""

    name: str
    processes: int = 1

    def describe(self, num: int) -> str:
        """The same as text, of `num` environments."""
        if num == 1:
            return "1 environment"
        if self.name == NATIVE:
            return f"{num} games played side by side in threads of the emulator"
        where = "one after another" if self.processes == 1 else f"side by side in {self.processes} processes"
        return f"{num} environments stepped {where}"

    def __str__(self) -> str:
        return self.name if self.processes == 1 else f"{self.name} ({self.processes})"


def choose_backend(spec: EnvSpec, num: int, brief: bool = False) -> Backend:
    """The backend that the spec asks for; on `auto`, processes where each has enough to do. Atari has its own threads.

    Play that is `brief` would end before its processes had started.
    """
    native = plays_natively(spec)
    here = Backend(NATIVE if native else "serial")
    if spec.vectorization == "serial" or num == 1 or brief:
        return here
    cores = cores_here()
    if spec.vectorization == "processes":
        each = LEAST_EACH if native else 1  # games are stepped side by side
        return Backend("processes", max(2, min(cores, num // each)))
    is_heavy = not native and str(find(spec.name).entry_point).startswith(HEAVY_FAMILIES)
    processes = min(cores, num // LEAST_EACH) if is_heavy else 1
    return Backend("processes", processes) if processes > 1 else here
