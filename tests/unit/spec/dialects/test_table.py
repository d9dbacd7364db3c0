"""A table of another lab's settings, applied to a small file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from operant.errors import SpecError
from operant.spec.dialects.conversion import Section
from operant.spec.dialects.converter import Converted, Converter
from operant.spec.dialects.explain import explain
from operant.spec.dialects.table import Table, ignored, only_of, read, refused, same, under, worked
from operant.spec.reading.document import Source
from operant.spec.reading.yaml import read_yaml


def doubled(section: Section, key: str) -> None:
    section.conversion.set("env.num_envs", 2 * section.whole(key, 1), section.at(key))


ROWS = (
    *under(
        "training",
        same("discount", "weight of later rewards", "agent.algorithm.gamma", default=0.9),
        same("budget", "frames of a run", "env.max_frame", needed=True),
        same("loss", "how errors count", "agent.algorithm.loss", values={"l2": "mse", "huber": "huber"}),
        worked("pairs", "pairs of environments", "env.num_envs", doubled),
        same("noise", "noise on weights", "agent.net.noise", values={0: None}),
    ),
    *only_of(["loud"], ignored("printing", "what is printed", "nothing is printed here")),
    refused("printing", "what is printed", "has no counterpart"),
    refused("parts.*.speed", "how fast a part is", "has no counterpart"),
)
TABLE = Table(ROWS, kind_of=lambda data: str(data.get("kind", "")))


def sections(top: Section) -> None:
    top.get("kind")
    read(top, TABLE.chosen(top.conversion.kind))
    top.close_all()


CONVERT = Converter("a lab", sections, TABLE)


def converted(text: str, overrides: Sequence[str] = ()) -> Converted:
    return CONVERT(read_yaml(Source(text, "theirs.yaml")), overrides=overrides)


def native(text: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    return converted(text, overrides).document.data


def test_settings_are_copied_with_their_defaults_mapped_and_worked_out() -> None:
    data = native("{training: {budget: 100, loss: l2, pairs: 3, noise: 0}}")
    assert data == {"agent": {"algorithm": {"gamma": 0.9, "loss": "mse"}}, "env": {"max_frame": 100, "num_envs": 6}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{training: {budget: 1, noise: 2}}", "training.noise = 2 has no counterpart"),
        ("{training: {budget: 1, loss: l1}}", 'training.loss = "l1" has no counterpart; there are l2, huber'),
        ("{training: {budget: 1, nose: 2}}", "training.nose = 2 is not a key that is understood here"),
        ("{training: {budget: 1}, printing: 1}", "printing = 1 has no counterpart"),
        ("{training: {budget: 1}, parts: [{}, {speed: 3}]}", "parts.1.speed = 3 has no counterpart"),
        ("{training: {discount: 0.5}}", "training.budget is missing"),
    ],
)
def test_what_has_no_counterpart_is_refused_at_its_place(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=r"theirs\.yaml") as caught:
        native(text)
    assert said in str(caught.value)


def test_a_row_may_be_for_one_kind_of_file() -> None:
    remarks = converted("{kind: loud, training: {budget: 1}, printing: 1}").remarks
    assert [str(each) for each in remarks] == ["printing: left out: nothing is printed here"]


def test_overrides_complete_the_file_before_it_is_judged() -> None:
    assert native("{training: {}}", ["env.max_frame=7"])["env"]["max_frame"] == 7
    assert native("{training: {}}", ["training.budget=8"])["env"]["max_frame"] == 8
    moot = converted("{training: {budget: 1, noise: 2}}", ["agent.net.noise=0"])
    assert [str(each) for each in moot.remarks] == ["training.noise: left out: -s says agent.net.noise"]
    assert moot.overrides == ("agent.net.noise=0",)


def test_a_missing_setting_names_the_flag_that_gives_it() -> None:
    with pytest.raises(SpecError, match=r"give it by -s env\.max_frame=VALUE"):
        native("{training: {}}")


def test_every_setting_is_explained_also_of_a_file_that_is_refused() -> None:
    text = "{kind: loud, training: {discount: 0.5, noise: 2}, printing: 1}"
    conversion, _ = CONVERT.converted(read_yaml(Source(text, "theirs.yaml")))
    found = {each.place: each for each in explain(conversion)}
    assert {place: each.verdict for place, each in found.items()} == {
        "kind": "same",
        "training.discount": "same",
        "training.noise": "refused",
        "printing": "remarked",
        "training.budget": "refused",
    }
    assert found["training.discount"].ours == {"agent.algorithm.gamma": 0.5}
    assert found["training.discount"].means == "weight of later rewards"
    assert found["printing"].why == "left out: nothing is printed here"
    assert found["training.budget"].value is None
