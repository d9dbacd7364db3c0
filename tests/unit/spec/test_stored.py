from __future__ import annotations

import pytest

from operant.errors import RunError
from operant.spec.schema import Spec
from operant.spec.stored import stored


def test_a_stored_spec_comes_back():
    spec = Spec.model_validate({"name": "mine", "meta": {"seed": 3}})
    assert stored(spec.model_dump(mode="json")) == spec


def test_a_spec_of_another_version_is_refused_by_the_setting_that_is_gone():
    data = Spec().model_dump(mode="json")
    data["env"]["gone"] = 1
    with pytest.raises(RunError, match=r"does not fit this version of Operant: env\.gone") as caught:
        stored(data)
    assert "provenance" in (caught.value.remedy or "")
