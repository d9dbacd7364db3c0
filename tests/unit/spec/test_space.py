from __future__ import annotations

from collections.abc import Callable
from random import Random
from textwrap import dedent

import pytest

from operant.errors import SpecError
from operant.spec.schema import Spec
from operant.spec.space import apply, parse, sample

Complain = Callable[..., str]

SUFFIX = {"agent.net.optimizer.lr__loguniform": [1e-4, 1e-3], "agent.algorithm.gamma__choice": [0.9, 0.99]}
MAPPING = {
    "agent.net.optimizer.lr": {"dist": "loguniform", "low": 1e-4, "high": 1e-3},
    "agent.algorithm.gamma": {"dist": "choice", "values": [0.9, 0.99]},
}
NESTED = {
    "agent": {"net": {"optimizer": {"lr__loguniform": [1e-4, 1e-3]}}, "algorithm": {"gamma__choice": [0.9, 0.99]}}
}


@pytest.mark.parametrize("search", [MAPPING, NESTED])
def test_all_spellings_make_the_same_space(search: dict[str, object]) -> None:
    assert [(each.path, each.distribution) for each in parse(search)] == [
        (each.path, each.distribution) for each in parse(SUFFIX)
    ]


def test_a_space_is_sampled_by_the_generator_given() -> None:
    space = parse(SUFFIX)
    values = sample(space, Random(3))
    assert list(values) == ["agent.net.optimizer.lr", "agent.algorithm.gamma"]
    assert 1e-4 <= values["agent.net.optimizer.lr"] <= 1e-3
    assert values == sample(space, Random(3)) != sample(space, Random(4))


def test_values_are_applied_to_a_copy_of_a_resolved_spec() -> None:
    resolved = Spec().model_dump(mode="json")
    changed = apply(resolved, {"agent.net.optimizer.lr": 0.01, "agent.net.hidden": [8]})
    spec = Spec.model_validate(changed)
    assert (spec.agent.net.optimizer.lr, spec.agent.net.hidden) == (0.01, (8,))
    assert resolved == Spec().model_dump(mode="json")


def test_no_search_is_an_empty_space() -> None:
    assert parse(None) == () == parse({})
    assert sample((), Random(0)) == {}


def test_a_malformed_space_is_refused() -> None:
    with pytest.raises(SpecError, match="unifrm is not a distribution"):
        parse({"agent.algorithm.gamma__unifrm": [0, 1]})


@pytest.mark.parametrize(
    "entry",
    [
        "agent.algorithm.gamma__uniform: [0.9, 0.99]",
        "agent.algorithm.gamma__randn: [0.9, 0.0001]",
        "agent.net.hidden__choice: [[64], [64, 64]]",
        "agent.algorithm.clip_eps__choice: [0.2, {start: 0.2, end: 0.1, frames: 1e5}]",
        "agent.algorithm.minibatch_size__choice: [100, 128]",
        "env.num_envs__quniform: [4, 16, 4]",
        "env.kwargs.gravity__uniform: [8, 12]",
        "agent.algorithm: {gamma__choice: [0.9], lam: {dist: uniform, low: 0.9, high: 1}}",
    ],
)
def test_a_space_that_can_fit_is_taken(entry: str, spec_text: str, complaint: Complain) -> None:
    assert complaint(f"{spec_text}search:\n  {entry}\n") == ""


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("agent.algorithm.gama__uniform: [0, 1]", "agent.algorithm.gama is not a setting of ppo | did you mean gamma?"),
        ("agent.algorithm.gamma__unifrm: [0, 1]", "unifrm is not a distribution | did you mean uniform?"),
        ("agent.algorithm.gamma__grid_search: [0, 1]", "grid_search is not a distribution | did you mean choice?"),
        (
            "agent.algorithm.gamma__uniform: [0.9, 1.2]",
            "agent.algorithm.gamma = 1.2 is out of range | must be 0 to 1; nearest: 1",
        ),
        (
            "agent.algorithm.gamma__uniform: [1, 0]",
            "search.agent.algorithm.gamma: uniform needs low = 1 below high = 0 | ",
        ),
        (
            "agent.algorithm.gamma: [0.9, 1]",
            "search.agent.algorithm.gamma names no distribution | write agent.algorithm.gamma__uniform: [low, high]",
        ),
        ("agent.algorithm.gamma: {dist: uniform, low: 0}", "uniform lacks high | it takes low, high"),
        ("agent.algorithm.gamma: {dist: uniform, lo: 0}", "lo is not a parameter of uniform | did you mean low?"),
        ("agent.algorithm.gamma: {dist: choice, values: 3}", "search.agent.algorithm.gamma: choice lists no values | "),
        ("agent.net__choice: [1]", "agent.net is not a single setting that can be searched | "),
        ("name__choice: [a, b]", "name is not a single setting that can be searched | "),
        (
            "agent.net.activation__choice: [tanh, rel]",
            'agent.net.activation = "rel" is not one of tanh, relu, gelu, silu, elu, selu, leaky_relu, sigmoid'
            " | did you mean relu?",
        ),
        (
            "agent.algorithm.minibatch_size__choice: [99, 99]",
            "none of 200 draws fits: agent.algorithm.minibatch_size = 99 does not divide num_envs x time_horizon"
            " = 4 x 128 = 512 | nearest valid values: 64 or 128; or time_horizon 99 or 198",
        ),
    ],
)
def test_a_space_that_cannot_fit_is_refused_at_its_line(
    entry: str, told: str, spec_text: str, complaint: Complain
) -> None:
    head, line, caret, *_ = complaint(f"{spec_text}search:\n  {entry}\n").splitlines()
    place, _, cause = head.partition(": ")
    assert place.startswith("demo.yaml:19:")
    assert line.endswith(entry)
    assert f"{cause} | {caret.split('^')[-1].strip()}" == told


def test_numbers_between_whole_numbers_are_refused(spec_text: str, complaint: Complain) -> None:
    told = complaint(f"{spec_text}search:\n  env.num_envs__uniform: [1, 8]\n")
    assert "is not a whole number" in told
    assert "draw whole numbers with randint, lograndint or quniform" in told


def test_a_setting_is_searched_once(spec_text: str, complaint: Complain) -> None:
    entries = "  agent.algorithm.gamma__uniform: [0, 1]\n  agent.algorithm: {gamma__choice: [1]}\n"
    assert complaint(f"{spec_text}search:\n{entries}").startswith(
        "demo.yaml:20:21: agent.algorithm.gamma is searched twice\n"
    )


def test_every_fault_of_a_space_is_told(spec_text: str, complaint: Complain) -> None:
    entries = "  agent.algorithm.gama__uniform: [0, 1]\n  agent.net.optimizer.lr__loguniform: [0, 1]\n"
    told = complaint(f"{spec_text}search:\n{entries}")
    assert "agent.algorithm.gama is not a setting of ppo" in told
    assert "loguniform needs low = 0 above 0" in told


def test_a_space_given_by_override_is_blamed_on_it(spec_text: str, complaint: Complain) -> None:
    assert complaint(spec_text, ["search.agent.algorithm.gamma__uniform=[0.9,1.2]"]) == dedent(
        """\
        command line: agent.algorithm.gamma = 1.2 is out of range
          -s search.agent.algorithm.gamma__uniform=[0.9,1.2]
                                    ^^^^^^^^^^^^^^ must be 0 to 1; nearest: 1
          try: operant help algorithm ppo"""
    )
