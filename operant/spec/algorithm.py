"""The base of what a person may say about an algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from operant.spec.fields import Closed
from operant.spec.misfit import Misfit

if TYPE_CHECKING:
    from operant.spec.schema import Spec


class Algorithm(Closed):
    """The base of every algorithm's settings (abstract).

    `ENGINE` names the engine that runs it; `RESUME` is "exact" when a resumed run equals one that
    was never stopped and "warm" otherwise; `TAKES_MASKS` is whether it keeps to the legal actions
    of environments that name them, and `TAKES_SEQUENCES` whether it can train a network that remembers;
    `MEMORY` is the memory that it has if none is named.
    """

    ENGINE: ClassVar[str]
    RESUME: ClassVar[Literal["exact", "warm"]]
    USES_MEMORY: ClassVar[bool]
    MEMORY: ClassVar[str] = "replay"
    TAKES_MASKS: ClassVar[bool] = False
    TAKES_SEQUENCES: ClassVar[bool] = False

    name: Any  # each algorithm narrows it to its own Literal

    @classmethod
    def resume_kind(cls, spec: Mapping[str, Any]) -> str:
        """`RESUME`, or what becomes of it under a spec, in plain data as a run has kept it."""
        del spec
        return cls.RESUME

    def misfits(self, spec: Spec) -> Iterable[Misfit]:
        """Where the settings of `spec` do not fit together under this algorithm."""
        raise NotImplementedError

    def inert(self) -> Mapping[str, str]:
        """The dotted paths of settings that this algorithm would never read, each with the reason."""
        raise NotImplementedError
