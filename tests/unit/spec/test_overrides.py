from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from operant.errors import SpecError
from operant.spec.load import load
from operant.spec.overrides import apply, fill, parse
from operant.spec.reading.document import Source, lookup
from operant.spec.reading.yaml import read_yaml
from operant.spec.schedules import Linear
from operant.spec.schema import Spec

Complain = Callable[..., str]
OPEN = "name: ppo_${env}\nenv:\n  name: ${env}-v${version}\n  max_frame: ${frames}\n"


def spec_of(text: str, overrides: Sequence[str]) -> Spec:
    Path("demo.yaml").write_text(text, encoding="utf-8")
    return load("demo.yaml", None, overrides).spec


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("agent.algorithm.gamma=0.98", ("agent", "algorithm", "gamma"), 0.98),
        ("env.max_frame=4e6", ("env", "max_frame"), 4_000_000),
        ("env.name=ALE/Pong-v5", ("env", "name"), "ALE/Pong-v5"),
        ("env.name='a=b'", ("env", "name"), "a=b"),
        ("agent.net.hidden=[32, 16]", ("agent", "net", "hidden"), [32, 16]),
        ("agent.net.hidden.1=16", ("agent", "net", "hidden"), [64, 16]),
        ("agent.net.optimizer.clip_grad_norm=null", ("agent", "net", "optimizer", "clip_grad_norm"), None),
        ("env.kwargs.gravity=9.8", ("env", "kwargs"), {"gravity": 9.8}),
        ("env={num_envs: 8}", ("env", "num_envs"), 8),
        ("name=other", ("name",), "other"),
        ("meta.seed = 7", ("meta", "seed"), 7),
    ],
)
def test_any_setting_can_be_overridden(override: str, path: tuple[str, ...], value: object, spec_text: str) -> None:
    assert lookup(spec_of(spec_text, [override]).model_dump(mode="json"), path) == value


def test_the_last_override_of_a_setting_wins(spec_text: str) -> None:
    assert spec_of(spec_text, ["meta.seed=1", "meta.seed=2"]).meta.seed == 2


def test_an_algorithm_chosen_by_override_brings_its_memory() -> None:
    assert spec_of("env: {num_envs: 1}\n", ["agent.algorithm.name=dqn"]).agent.memory is not None


@pytest.mark.parametrize("before", ["", "    epsilon: 0.1\n"])
def test_one_end_of_a_default_schedule_can_be_overridden(before: str) -> None:
    text = f"agent:\n  algorithm:\n    name: dqn\n{before}"
    algorithm = spec_of(text, ["agent.algorithm.epsilon.end=0.2"]).agent.algorithm
    assert getattr(algorithm, "epsilon", None) == Linear(start=1.0, end=0.2, frames=10_000)


def test_one_end_of_a_written_schedule_can_be_overridden() -> None:
    text = "agent:\n  algorithm:\n    name: dqn\n    epsilon: {start: 0.5, end: 0.1, frames: 10}\n"
    algorithm = spec_of(text, ["agent.algorithm.epsilon.end=0.2"]).agent.algorithm
    assert getattr(algorithm, "epsilon", None) == Linear(start=0.5, end=0.2, frames=10)


def test_placeholders_are_filled_with_values_of_their_own_type() -> None:
    spec = spec_of(OPEN, ["env=CartPole", "version=1", "frames=2e5"])
    assert (spec.name, spec.env.name, spec.env.max_frame) == ("ppo_CartPole", "CartPole-v1", 200_000)


def test_a_placeholder_comes_before_a_section_of_the_same_name() -> None:
    assert spec_of("env:\n  name: ${env}\n", ["env=Acrobot-v1"]).env.name == "Acrobot-v1"


def test_placeholders_in_lists_and_search_are_filled() -> None:
    text = 'agent:\n  net:\n    hidden: ["${width}", 8]\nsearch:\n  agent.algorithm.gamma__uniform: [0.9, "${high}"]\n'
    spec = spec_of(text, ["width=32", "high=0.95"])
    assert spec.agent.net.hidden == (32, 8)
    assert spec.search == {"agent.algorithm.gamma__uniform": [0.9, 0.95]}


def test_open_placeholders_are_all_listed_with_what_to_set(complaint: Complain) -> None:
    assert complaint(OPEN, ["env=CartPole"]) == dedent(
        """\
        demo.yaml:3:9: env.name waits for ${version}
          3 |   name: ${env}-v${version}
            |         ^^^^^^^^^^^^^^^^^^ not set
        demo.yaml:4:14: env.max_frame waits for ${frames}
          4 |   max_frame: ${frames}
            |              ^^^^^^^^^ not set
          try: add -s version=VALUE -s frames=VALUE"""
    )


def test_a_misspelt_placeholder_is_told_beside_the_open_one(complaint: Complain) -> None:
    told = complaint("env:\n  max_frame: ${frames}\n", ["frame=10"])
    assert told.startswith(
        "command line: frame is neither a setting nor a placeholder of this spec\n"
        "  -s frame=10\n"
        "     ^^^^^ did you mean frames?\n"
    )
    assert "env.max_frame waits for ${frames}" in told


def test_a_bad_value_for_a_placeholder_is_blamed_on_the_override(complaint: Complain) -> None:
    assert complaint("env:\n  max_frame: ${frames}\n", ["frames=many"]).startswith(
        'command line: env.max_frame = "many" is not a whole number\n  -s frames=many\n            ^^^^\n'
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gamma", "command line: the override has no value | write null if that is meant"),
        ("gamma=", "command line: the override has no value | write null if that is meant"),
        ("gamma=#0.9", "command line: the override has no value | write null if that is meant"),
        ("=3", "command line: the override has an empty name | NAME=VALUE"),
        ("agent..gamma=3", "command line: the override has an empty name | NAME=VALUE"),
        (
            "env.num_envs=[3",
            "command line: the value cannot be read as YAML: the text ends inside a bracket or brace"
            " | put the text in quotes",
        ),
        (
            "env.num_envs=3: 4: 5",
            "command line: the value cannot be read as YAML: a second ': ' where a value should end"
            " | put the text in quotes",
        ),
    ],
)
def test_a_malformed_override_is_refused(text: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text)
    head, line, caret, remedy = str(caught.value).splitlines()
    assert f"{head} | {caret.split('^')[-1].strip()}" == told
    assert line == f"  -s {text}"
    assert remedy == "  try: write -s NAME=VALUE, such as -s agent.algorithm.gamma=0.98"


@pytest.mark.parametrize("item", ["7", "x", "-1"])
def test_only_items_that_exist_can_be_overridden(item: str, spec_text: str, complaint: Complain) -> None:
    assert complaint(spec_text, [f"agent.net.hidden.{item}=3"]).startswith(
        f"command line: {item} is not an item of a list of 2\n"
    )


def test_filling_gives_back_what_fills_nothing() -> None:
    document = read_yaml(Source(OPEN, "demo.yaml"))
    filled, rest = fill(document, ["env=Pendulum", "frames=4e6", "version=1", "meta.seed=7"])
    assert filled.data == {"name": "ppo_Pendulum", "env": {"name": "Pendulum-v1", "max_frame": 4e6}}
    assert rest == ["meta.seed=7"]
    with pytest.raises(SpecError, match=r"env\.name waits for \$\{version\}"):
        fill(document, ["env=Pendulum", "frames=4e6"])


def test_a_placeholder_may_have_a_default_of_its_own_type() -> None:
    text = "name: ppo\nenv: {name: '${env:-ALE/Pong-v5}', max_frame: '${frames:-4e6}'}\n"
    document = read_yaml(Source(text, "demo.yaml"))
    assert apply(document, []).data == {"name": "ppo", "env": {"name": "ALE/Pong-v5", "max_frame": 4e6}}
    assert apply(document, ["frames=7"]).data["env"]["max_frame"] == 7


def test_the_environment_given_for_a_placeholder_names_the_run() -> None:
    document = read_yaml(Source("name: ppo\nenv: {name: '${env:-ALE/Pong-v5}'}\n", "demo.yaml"))
    assert apply(document, []).data["name"] == "ppo"
    assert apply(document, ["env=ALE/MsPacman-v5"]).data["name"] == "ppo_mspacman"
    assert apply(document, ["env=ALE/MsPacman-v5", "name=mine"]).data["name"] == "mine"
    assert apply(document, ["env=my_package.mazes.Maze"]).data["name"] == "ppo_maze"
