"""The JSON Schema of spec files, for completion and checks in editors."""

from __future__ import annotations

from typing import Any

from operant.spec.builtin import SECTION_NAMES
from operant.spec.schema import Spec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """A schema that accepts a file of one spec, or of several under their names."""
    spec = Spec.model_json_schema()
    shared = spec.pop("$defs")
    spec["properties"]["$schema"] = {"type": "string", "description": "Where editors find this schema."}
    named = {
        "title": "Named specs",
        "description": "Several specs, each under its name; a name that starts with _ only holds YAML anchors.",
        "type": "object",
        "propertyNames": {"not": {"enum": list(SECTION_NAMES)}},
        "patternProperties": {"^[A-Za-z0-9]": {"$ref": "#/$defs/Spec"}},
        "minProperties": 1,
    }
    return {
        "$schema": DIALECT,
        "title": "Operant spec",
        "description": "One experiment of Operant, or several under their names.",
        "anyOf": [{"$ref": "#/$defs/Spec"}, named],
        "$defs": {**shared, "Spec": spec},
    }
