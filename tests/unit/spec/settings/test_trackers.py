from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from operant.errors import SpecError
from operant.spec.describe import describe, json_schema
from operant.spec.fork import check_fork
from operant.spec.load import load_mapping
from operant.spec.schema import Spec
from operant.spec.settings.trackers import WandbSpec

FORMS = [
    "wandb",
    ["wandb"],
    [{"name": "wandb"}],
    {"wandb": None},
    {"wandb": {}},
]


def loaded(track: Any) -> Spec:
    return load_mapping({"name": "x", "meta": {"track": track}}).spec


@pytest.mark.parametrize("track", FORMS)
def test_a_tracker_may_be_written_in_several_forms(track: Any) -> None:
    [found] = loaded(track).meta.track
    assert isinstance(found, WandbSpec)
    assert (found.name, found.project) == ("wandb", "operant")
    jsonschema.validate({"name": "x", "meta": {"track": track}}, json_schema())


def test_the_settings_of_each_are_its_own_and_are_stored() -> None:
    spec = loaded({"tensorboard": None, "wandb": {"mode": "offline", "tags": ["a"]}})
    assert [each.name for each in spec.meta.track] == ["tensorboard", "wandb"]
    data = spec.model_dump(mode="json")
    assert data["meta"]["track"][1]["mode"] == "offline"
    assert Spec.model_validate(data) == spec


@pytest.mark.parametrize(
    ("track", "words"),
    [
        (["tensorbord"], "did you mean tensorboard?"),
        ({"tensorbord": {}}, "meta.track.tensorbord"),
        ({"wandb": {"projct": "x"}}, "did you mean project?"),
        ([{"name": "wandb", "mode": "ofline"}], "did you mean offline?"),
        (["wandb", "wandb"], "wandb is named twice"),
        ({"wandb": 3}, "write wandb: {setting: value}"),
        ({"mlflow": {"tracking_uri": "https://me:secret@host"}}, "leave the login out"),
        (["no_such_module:Tracker"], "there is no module 'no_such_module'"),
    ],
)
def test_a_mistake_is_told_at_its_place(track: Any, words: str) -> None:
    with pytest.raises(SpecError) as told:
        loaded(track)
    assert words in str(told.value)


def test_a_fork_may_change_its_trackers() -> None:
    check_fork(loaded(["wandb"]), loaded({"tensorboard": {"dir": "x"}}), "parent", "source")


def test_help_explains_each() -> None:
    assert "mode" in [row.name for row in describe(["tracker", "wandb"]).rows]
    assert describe(["meta.track.wandb.project"]).rows[0].name == "meta.track.wandb.project"
