"""The spec that a run keeps, read back: it was right when the run was made, by the Operant of that day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from operant.errors import RunError
from operant.spec.schema import Spec


def stored(data: Mapping[str, Any]) -> Spec:
    """The spec of a run; a `RunError` that names the setting where this version has other ones."""
    try:
        return Spec.model_validate(data)
    except ValidationError as trouble:
        fault = trouble.errors()[0]
        setting = ".".join(str(part) for part in fault["loc"])
        raise RunError(
            f"the spec of this run does not fit this version of Operant: {setting}: {fault['msg']}",
            remedy="use the version that made the run (its folder provenance names the commit), or train anew",
        ) from trouble
