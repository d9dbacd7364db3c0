"""Which settings are numbers in a compiled program, and which decide the program itself.

A learner names its `TRACED` settings; lanes of one program may differ in them, and in nothing else.
All other settings are static: sessions that differ in one have different programs. So that the two are never
confused, the spec that a learner keeps has a placeholder for every traced number: reading one there fails before
anything is compiled.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pydantic import BaseModel

from operant.spec.schema import Spec

OPTIMIZER = tuple(f"agent.net.optimizer.{name}" for name in ("lr", "lr_end_fraction", "clip_grad_norm"))
CRITIC = "agent.net.optimizer.critic_lr"
REFUSED = "bool float int index eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv pow rpow neg abs array"


class Traced:
    """Stands for a traced number where only static settings may be read; whatever is done with it is an error."""

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, path: str) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"<traced {self._path}>"

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{self._path} is traced: lanes may differ in it, so it is read from `hyper` only")


for operation in REFUSED.split():
    setattr(Traced, f"__{operation}__", Traced._refuse)


def static(spec: Spec, traced: tuple[str, ...]) -> Spec:
    """The spec with `Traced` in the place of each traced number that is given; whether one is given is static."""
    for path in traced:
        spec = _replaced(spec, path.split("."), path)
    return spec


def _replaced(model: Any, keys: list[str], path: str) -> Any:
    key, *further = keys
    value = getattr(model, key)
    if further:
        assert isinstance(value, BaseModel), f"{path} is no setting of this spec"
        return model.model_copy(update={key: _replaced(value, further, path)})
    return model if value is None else model.model_copy(update={key: Traced(path)})
