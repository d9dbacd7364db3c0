"""The spec: everything that decides what a run does, closed and frozen.

Settings that must agree are checked here, before any process starts: each conflict becomes one error at the field to
blame, with the nearest valid values.
"""

from __future__ import annotations

from pydantic import ValidationInfo, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from operant.spec.settings.sections import SpecFields
from operant.spec.validation.cross_field import find_conflicts, setting

OF_A_RUN = "of_a_run"
"""In the context of a validation: the spec is one that a run has kept."""


class Spec(SpecFields):
    """One experiment."""

    @model_validator(mode="after")
    def _check_conflicts(self, info: ValidationInfo) -> Spec:
        """Every conflict becomes an error at the field to blame; a run's spec may have those that were allowed once."""
        of_a_run = (info.context or {}).get(OF_A_RUN, False)
        faults = [
            InitErrorDetails(
                type=PydanticCustomError("conflict", "{reason}", {"reason": conflict.reason, "conflict": conflict}),
                loc=tuple(conflict.path.split(".")),
                input=setting(self, conflict.path),
            )
            for conflict in find_conflicts(self)
            if not (of_a_run and conflict.allowed_once)
        ]
        if faults:
            raise ValidationError.from_exception_data("spec", faults)
        return self
