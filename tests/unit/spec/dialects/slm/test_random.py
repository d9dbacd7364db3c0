"""Random."""

from __future__ import annotations

from operant.spec.schema import Spec
from tests.unit.spec.dialects.slm.conftest import native, spec_of


def test_random_is_taken_over_and_what_it_does_not_read_is_named() -> None:
    data, remarks = native(spec_of({"name": "Random"}, {"name": "OnPolicyReplay"}, {"type": "MLPNet"}))
    assert data["agent"] == {"algorithm": {"name": "random"}}
    Spec.model_validate(data)
    assert "agent.memory.name: left out: random play does not read it" in remarks
    assert "agent.net.type: left out: random play does not read it" in remarks
