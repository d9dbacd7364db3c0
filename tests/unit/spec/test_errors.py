"""A table of mistakes, each with the very words that a person is told."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

Complain = Callable[..., str]

IN_THE_FILE = {
    "misspelt setting": (
        ("gamma: 0.99", "gama: 0.99"),
        """\
        demo.yaml:9:5: agent.algorithm.gama is not a setting of ppo
          9 |     gama: 0.99
            |     ^^^^ did you mean gamma?
          try: operant help algorithm ppo""",
    ),
    "misspelt section": (
        ("meta:", "mta:"),
        """\
        demo.yaml:16:1: mta is not a section of a spec
          16 | mta:
             | ^^^ did you mean meta?
          try: operant help spec""",
    ),
    "setting in the wrong section": (
        ("num_envs: 4", "gamma: 0.9"),
        """\
        demo.yaml:4:3: env.gamma is not a setting of env
          4 |   gamma: 0.9
            |   ^^^^^ did you mean agent.algorithm.gamma?
          try: operant help env""",
    ),
    "setting of another algorithm": (
        ("gamma: 0.99", "training_start: 1"),
        """\
        demo.yaml:9:5: agent.algorithm.training_start is not a setting of ppo
          9 |     training_start: 1
            |     ^^^^^^^^^^^^^^ it is a setting of dqn
          try: operant help algorithm ppo""",
    ),
    "like nothing known": (
        ("num_envs: 4", "xyzzy: 4"),
        """\
        demo.yaml:4:3: env.xyzzy is not a setting of env
          4 |   xyzzy: 4
            |   ^^^^^ it has name, num_envs, max_frame, max_t, normalize_obs, normalize_reward, clip_obs, reward_scale, clip_reward, vectorization, kwargs, text
          try: operant help env""",  # noqa: E501
    ),
    "out of range": (
        ("gamma: 0.99", "gamma: 1.5"),
        """\
        demo.yaml:9:12: agent.algorithm.gamma = 1.5 is out of range
          9 |     gamma: 1.5
            |            ^^^ must be 0 to 1; nearest: 1
          try: operant help algorithm ppo""",
    ),
    "on an open bound": (
        ("lr: 3e-4", "lr: 0"),
        """\
        demo.yaml:15:11: agent.net.optimizer.lr = 0 is out of range
          15 |       lr: 0
             |           ^ must be above 0, at most 10
          try: operant help optimizer""",
    ),
    "not a number at all": (
        ("lr: 3e-4", "lr: .nan"),
        """\
        demo.yaml:15:11: agent.net.optimizer.lr = NaN is out of range
          15 |       lr: .nan
             |           ^^^^ must be above 0, at most 10
          try: operant help optimizer""",
    ),
    "end of a schedule out of range": (
        ("gamma: 0.99", "clip_eps: {start: 0.2, end: 3, frames: 1e4}"),
        """\
        demo.yaml:9:33: agent.algorithm.clip_eps.end = 3 is out of range
          9 |     clip_eps: {start: 0.2, end: 3, frames: 1e4}
            |                                 ^ must be above 0, at most 1; nearest: 1
          try: operant help schedule linear""",
    ),
    "schedule without its length": (
        ("gamma: 0.99", "clip_eps: {start: 0.2, end: 0.1}"),
        """\
        demo.yaml:9:5: agent.algorithm.clip_eps.frames is missing
          9 |     clip_eps: {start: 0.2, end: 0.1}
            |     ^^^^^^^^ it needs frames: how many frames the change takes
          try: operant help schedule linear""",
    ),
    "quoted number": (
        ("gamma: 0.99", "gamma: '0.99'"),
        """\
        demo.yaml:9:12: agent.algorithm.gamma = "0.99" is not a number
          9 |     gamma: '0.99'
            |            ^^^^^^ remove the quotes
          try: operant help algorithm ppo""",
    ),
    "fraction for a whole number": (
        ("num_envs: 4", "num_envs: 3.5"),
        """\
        demo.yaml:4:13: env.num_envs = 3.5 is not a whole number
          4 |   num_envs: 3.5
            |             ^^^ nearest: 3 or 4
          try: operant help env""",
    ),
    "true for a whole number": (
        ("num_envs: 4", "num_envs: true"),
        """\
        demo.yaml:4:13: env.num_envs = true is not a whole number
          4 |   num_envs: true
            |             ^^^^
          try: operant help env""",
    ),
    "YAML 1.1 word for true": (
        ("num_envs: 4", "normalize_obs: yes"),
        """\
        demo.yaml:4:18: env.normalize_obs = "yes" is not true or false
          4 |   normalize_obs: yes
            |                  ^^^ did you mean true?
          try: operant help env""",
    ),
    "number for a list": (
        ("hidden: [64, 64]", "hidden: 64"),
        """\
        demo.yaml:13:13: agent.net.hidden = 64 is not a list of whole numbers
          13 |     hidden: 64
             |             ^^ did you mean [64]?
          try: operant help net mlp""",
    ),
    "wrong item of a list": (
        ("hidden: [64, 64]", "hidden: [64, 0]"),
        """\
        demo.yaml:13:18: agent.net.hidden.1 = 0 is out of range
          13 |     hidden: [64, 0]
             |                  ^ must be 1 to 65,536; nearest: 1
          try: operant help net mlp""",
    ),
    "name for a section": (
        ("env:\n  name: CartPole-v1\n  num_envs: 4\n  max_frame: 2e5", "env: CartPole-v1"),
        """\
        demo.yaml:2:6: env = "CartPole-v1" is not a section
          2 | env: CartPole-v1
            |      ^^^^^^^^^^^ did you mean env.name?
          try: operant help spec""",
    ),
    "setting left empty": (
        ("max_session: 4", "max_session:"),
        """\
        demo.yaml:17:3: meta.max_session = null is not a whole number
          17 |   max_session:
             |   ^^^^^^^^^^^ leave the line out to keep the default, 4
          try: operant help meta""",
    ),
    "unknown choice": (
        ("max_session: 4", "device: cup"),
        """\
        demo.yaml:17:11: meta.device = "cup" is not one of auto, cpu, cuda
          17 |   device: cup
             |           ^^^ did you mean cpu?
          try: operant help meta""",
    ),
    "unknown algorithm": (
        ("name: ppo", "name: pppo"),
        """\
        demo.yaml:8:11: agent.algorithm.name = "pppo" is not one of ppo, dqn, a2c, reinforce, sac, sarsa, td3, crossq, random, sil, ppo_sil, grpo, dr_grpo, dapo, gspo, cispo, rloo, reinforce_pp, gkd, sft
          8 |     name: pppo
            |           ^^^^ did you mean ppo?
          try: operant help algorithm""",  # noqa: E501
    ),
    "name that cannot be a folder": (
        ("name: demo", "name: my/demo"),
        """\
        demo.yaml:1:7: name = "my/demo" has characters that do not belong
          1 | name: my/demo
            |       ^^^^^^^ letters, digits, dots, dashes and underscores
          try: operant help spec""",
    ),
    "value that JSON cannot keep": (
        ("num_envs: 4", "kwargs: {limit: .inf}"),
        """\
        demo.yaml:4:3: env.kwargs = {"limit": Infinity} cannot be stored
          4 |   kwargs: {limit: .inf}
            |   ^^^^^^ only text, finite numbers, true, false, null
          try: operant help env""",
    ),
    "impossible minibatch": (
        ("minibatch_size: 128", "minibatch_size: 100"),
        """\
        demo.yaml:11:21: agent.algorithm.minibatch_size = 100 does not divide num_envs x time_horizon = 4 x 128 = 512
          11 |     minibatch_size: 100
             |                     ^^^ nearest valid values: 64 or 128; or time_horizon 125 or 150
          try: add -s agent.algorithm.minibatch_size=128""",
    ),
    "memory for an on-policy algorithm": (
        ("  net:", "  memory:\n    name: replay\n  net:"),
        """\
        demo.yaml:12:3: agent.memory has no effect: ppo learns on-policy
          12 |   memory:
             |   ^^^^^^ leave it out
          try: operant help agent""",
    ),
}

ON_THE_COMMAND_LINE = {
    "misspelt setting": (
        ["agent.algorithm.gama=0.98"],
        """\
        command line: agent.algorithm.gama is not a setting of ppo
          -s agent.algorithm.gama=0.98
                             ^^^^ did you mean gamma?
          try: operant help algorithm ppo""",
    ),
    "short name": (
        ["gamma=0.98"],
        """\
        command line: gamma is neither a setting nor a placeholder of this spec
          -s gamma=0.98
             ^^^^^ did you mean agent.algorithm.gamma?
          try: operant help spec""",
    ),
    "misspelt section": (
        ["agnt.algorithm.gamma=0.98"],
        """\
        command line: agnt is not a section of a spec
          -s agnt.algorithm.gamma=0.98
             ^^^^ did you mean agent?
          try: operant help spec""",
    ),
    "out of range": (
        ["agent.algorithm.gamma=7"],
        """\
        command line: agent.algorithm.gamma = 7 is out of range
          -s agent.algorithm.gamma=7
                                   ^ must be 0 to 1; nearest: 1
          try: operant help algorithm ppo""",
    ),
    "setting below a setting": (
        ["env.name.id=3"],
        """\
        command line: env.name = {"id": 3} is not text
          -s env.name.id=3
                 ^^^^
          try: operant help env""",
    ),
    "conflict caused by the override": (
        ["env.num_envs=5"],
        """\
        command line: agent.algorithm.minibatch_size = 256 does not divide num_envs x time_horizon = 5 x 128 = 640
          -s env.num_envs=5
                          ^ nearest valid values: 160 or 320; or time_horizon 256
          try: add -s agent.algorithm.minibatch_size=320""",
    ),
}


@pytest.mark.parametrize("mistake", IN_THE_FILE)
def test_mistake_in_the_file(mistake: str, spec_text: str, complaint: Complain) -> None:
    (right, wrong), told = IN_THE_FILE[mistake]
    assert spec_text.count(right) == 1
    assert complaint(spec_text.replace(right, wrong)) == dedent(told)


@pytest.mark.parametrize("mistake", ON_THE_COMMAND_LINE)
def test_mistake_on_the_command_line(mistake: str, spec_text: str, complaint: Complain) -> None:
    overrides, told = ON_THE_COMMAND_LINE[mistake]
    text = spec_text.replace("minibatch_size: 128", "minibatch_size: 256")
    assert complaint(text, overrides) == dedent(told)


def test_every_mistake_is_told_overrides_first_then_by_line(spec_text: str, complaint: Complain) -> None:
    text = spec_text.replace("gamma: 0.99", "gama: 0.99").replace("num_envs: 4", "num_envs: none")
    assert complaint(text, ["meta.device=gpu"]) == dedent(
        """\
        command line: meta.device = "gpu" is not one of auto, cpu, cuda
          -s meta.device=gpu
                         ^^^ did you mean cpu?
          try: operant help meta
        demo.yaml:4:13: env.num_envs = "none" is not a whole number
          4 |   num_envs: none
            |             ^^^^
          try: operant help env
        demo.yaml:9:5: agent.algorithm.gama is not a setting of ppo
          9 |     gama: 0.99
            |     ^^^^ did you mean gamma?
          try: operant help algorithm ppo"""
    )


def test_at_most_eight_are_shown(complaint: Complain) -> None:
    told = complaint("env:\n" + "".join(f"  wrong_{n}: 1\n" for n in range(11)))
    assert told.count("is not a setting of env") == 8
    assert told.endswith("and 3 more\n  try: operant help env")


def test_a_conflict_of_defaults_points_at_the_setting_that_was_written(complaint: Complain) -> None:
    told = complaint("agent:\n  algorithm:\n    time_horizon: 100\n")
    assert told.splitlines()[:3] == [
        "demo.yaml:3:19: agent.algorithm.minibatch_size = 128 does not divide num_envs x time_horizon = 4 x 100 = 400",
        "  3 |     time_horizon: 100",
        "    |                   ^^^ nearest valid values: 100 or 200; or time_horizon 96 or 128",
    ]


def test_a_conflict_of_nothing_written_points_at_the_section(complaint: Complain) -> None:
    told = complaint("env:\n  num_envs: 3\nagent:\n  algorithm:\n    name: reinforce\n")
    assert told.startswith("demo.yaml:2:13: agent.algorithm.training_frequency = 4 is not a multiple of num_envs = 3\n")


@pytest.mark.parametrize(
    "text", ["[1, 2]", "{}", "null", "-1", "1e400", "'x'", ".inf", "true", "{a: {b: [c]}}", "${x}"]
)
@pytest.mark.parametrize(
    "path",
    [
        "name",
        "env",
        "env.num_envs",
        "env.kwargs",
        "agent",
        "agent.algorithm",
        "agent.algorithm.name",
        "agent.memory",
        "agent.algorithm.clip_eps",
        "agent.net.hidden",
        "agent.net.optimizer",
        "agent.net.activation",
        "search",
        "meta",
    ],
)
def test_no_nonsense_escapes_as_anything_but_a_report(path: str, text: str, complaint: Complain) -> None:
    lines = [f"{'  ' * depth}{part}:" for depth, part in enumerate(path.split("."))]
    told = complaint("\n".join(lines) + f" {text}\n")
    for jargon in ("pydantic", "Input should", "validation error", "Traceback", "dict", "NoneType", "union", "tuple"):
        assert jargon not in told


def test_a_task_of_a_mixture_has_bounds_and_help_of_its_own(complaint: Complain) -> None:
    text = """\
name: demo
env:
  name: mixture
  text:
    mixture:
      - {name: copy, weight: -2}
      - {name: sort, wieght: 1}
agent: {algorithm: {name: grpo}}
"""
    told = complaint(text)
    assert "env.text.mixture.0.weight = -2 is out of range" in told
    assert "must be 0 to 1,000,000" in told
    assert "env.text.mixture.1.wieght is not a setting of mixture" in told
    assert "try: operant help text mixture" in told
