from __future__ import annotations

import json
from typing import Any

from operant.spec.describe import json_schema
from operant.spec.settings.algorithms import ALGORITHMS


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(each) for each in node.values()))
    return set().union(*(references(each) for each in node)) if isinstance(node, list) else set()


def test_the_schema_is_plain_json_that_names_its_dialect() -> None:
    schema = json_schema()
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "Operant spec"


def test_a_file_is_one_spec_or_a_map_of_named_ones() -> None:
    one, many = json_schema()["anyOf"]
    assert one == {"$ref": "#/$defs/Spec"}
    assert many["patternProperties"] == {"^[A-Za-z0-9]": {"$ref": "#/$defs/Spec"}}
    assert "env" in many["propertyNames"]["not"]["enum"]


def test_every_reference_leads_somewhere() -> None:
    schema = json_schema()
    assert {each.removeprefix("#/$defs/") for each in references(schema)} <= set(schema["$defs"])


def test_settings_carry_range_default_and_description() -> None:
    defs = json_schema()["$defs"]
    gamma = defs["PpoSpec"]["properties"]["gamma"]
    assert (gamma["minimum"], gamma["maximum"], gamma["default"]) == (0, 1, 0.99)
    assert gamma["description"] == "Discount of future reward."
    clip = defs["PpoSpec"]["properties"]["clip_eps"]["oneOf"]
    assert clip[0] == {"exclusiveMinimum": 0, "maximum": 1, "type": "number"}
    assert all(each["additionalProperties"] is False for each in defs.values())


def test_only_the_default_algorithm_may_leave_its_name_out() -> None:
    choices = json_schema()["$defs"]["AgentSpec"]["properties"]["algorithm"]["oneOf"]
    *built_in, own = choices
    assert len(built_in) == len(ALGORITHMS)
    assert "required" not in built_in[0]
    assert all(each["required"] == ["name"] for each in choices[1:])
    assert "$ref" not in own
