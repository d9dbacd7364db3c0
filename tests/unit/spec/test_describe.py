from __future__ import annotations

import pytest

from operant.errors import UsageError
from operant.spec.describe import Row, Topic, describe, topics
from operant.spec.distributions import PARAMETERS


def row(topic: Topic, name: str) -> Row:
    return next(each for each in topic.rows if each.name == name)


def test_an_algorithm_is_described_setting_by_setting() -> None:
    topic = describe(["algorithm", "ppo"])
    assert topic.title == "algorithm ppo"
    assert topic.summary == "Proximal policy optimisation with a clipped objective (Schulman et al., 2017)."
    assert row(topic, "gamma") == Row("gamma", "number", "0.99", "0 to 1", "Discount of future reward.")
    assert row(topic, "clip_vloss").default == "null"


@pytest.mark.parametrize(
    ("words", "name", "type_", "default", "range_"),
    [
        (["env"], "max_t", "whole number or null", "null", "1 to 1,000,000,000"),
        (["env"], "name", "text", "CartPole-v1", "1 to 200 characters"),
        (["meta"], "device", "one of", "cpu", "auto, cpu, cuda"),
        (["net", "mlp"], "hidden", "list of whole numbers", "[64, 64]", "at most 16 items; each 1 to 65,536"),
        (["optimizer"], "eps", "number", "1e-05", "above 0, below 1"),
        (["memory", "prioritised"], "beta", "number or schedule", "0.4", "0 to 1"),
        (
            ["algorithm", "dqn"],
            "epsilon",
            "number or schedule",
            "start: 1, end: 0.05, begin: 0, frames: 10000",
            "0 to 1",
        ),
        (["algorithm", "dqn"], "double", "true or false", "true", ""),
        (["schedule", "linear"], "frames", "whole number", "required", "1 to 1,000,000,000,000"),
        (["search"], "quniform", "[low, high, q]", "", ""),
        (["PPO"], "lam", "number", "0.95", "0 to 1"),
    ],
)
def test_rows_are_in_plain_words(words: list[str], name: str, type_: str, default: str, range_: str) -> None:
    found = row(describe(words), name)
    assert (found.type, found.default, found.range) == (type_, default, range_)


def test_a_kind_lists_its_choices() -> None:
    topic = describe(["memory"])
    assert [each.name for each in topic.rows] == ["replay", "prioritised"]
    assert topic.rows[0].description == "A ring of past transitions, sampled uniformly."


def test_sections_point_to_their_own_help() -> None:
    assert row(describe(["net", "mlp"]), "optimizer").description.endswith("See `operant help optimizer`.")
    assert row(describe(["agent"]), "algorithm").description.endswith("See `operant help algorithm`.")
    assert row(describe(["spec"]), "env").description.endswith("See `operant help env`.")


def test_every_topic_can_be_described() -> None:
    assert [each.name for each in describe([]).rows] == [words for words, _ in topics()]
    for words, about in topics():
        topic = describe(words.split())
        assert (topic.title, topic.summary) == (words, about)
        assert topic.rows
        assert all(each.description for each in topic.rows)


def test_every_distribution_is_listed() -> None:
    assert [each.name for each in describe(["search"]).rows] == list(PARAMETERS)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "algoritm ppo",
            "there is no help on algoritm ppo; did you mean algorithm ppo?\n  try: operant help algorithm ppo",
        ),
        ("dqm", "there is no help on dqm; did you mean algorithm dqn?\n  try: operant help algorithm dqn"),
        (
            "prioritized",
            "there is no help on prioritized; did you mean memory prioritised?\n  try: operant help memory prioritised",
        ),
        ("memry", "there is no help on memry; did you mean memory?\n  try: operant help memory"),
        ("xyzzy", "there is no help on xyzzy\n  try: operant help"),
    ],
)
def test_an_unknown_topic_is_told_with_the_nearest(words: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        describe(words.split())
    assert str(caught.value) == told
