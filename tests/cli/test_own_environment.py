"""A user's own environment, in files of the working directory, through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest

from tests.cli.conftest import ROOT, Operant
from tests.warm import operant_warm

MAZE = """\
import gymnasium as gym
import numpy as np


class Corridor(gym.Env):
    observation_space = gym.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length=3, render_mode=None):
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(-1, 2))
        return np.array([self.at], np.float32), {}

    def step(self, action):
        self.at += 1 if action == 1 else -1
        done = abs(self.at) >= self.length
        return np.array([self.at], np.float32), float(self.at >= self.length), done, False, {}


class Forgetful(Corridor):
    def reset(self, *, seed=None, options=None):
        return np.random.random(1).astype(np.float32), {}


class Crooked(Corridor):
    def reset(self, *, seed=None, options=None):
        return np.zeros(3, np.float32), {}


class OldStyle(Corridor):
    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, {}


def corridor_of_six(**options):
    return Corridor(**{**options, "length": 6})


NOT_AN_ENVIRONMENT = 3
gym.register("Corridor-v0", entry_point=Corridor, max_episode_steps=40)
"""
FUNCTIONAL = """\
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from operant.envs.functional.env import Discrete, FunctionalEnv, Outcome


class Place(NamedTuple):
    at: jax.Array
    time: jax.Array


@dataclass(frozen=True)
class Corridor(FunctionalEnv):
    name = "corridor"
    observation_shape = (1,)
    actions = Discrete(2)
    length: int = 3
    limit: int = 40

    def reset(self, key):
        state = Place(jax.random.randint(key, (), -1, 2).astype(jnp.float32), jnp.int32(0))
        return state, self.observe(state)

    def step(self, state, action, key):
        after = Place(state.at + jnp.where(action == 1, 1.0, -1.0), state.time + 1)
        done = jnp.abs(after.at) >= self.length
        reward = (after.at >= self.length).astype(jnp.float32)
        return after, Outcome(self.observe(after), reward, done, (after.time >= self.limit) & ~done, {})

    def observe(self, state):
        return state.at[None]
"""
TASK = """\
from operant.envs.text.task import RIGHT, WRONG, Problem, Task


class Echo(Task):
    QUICK = True

    def __init__(self, word="a"):
        self.name, self.word = "echo", word

    def problems(self, split):
        words = [self.word * length for length in (range(1, 5) if split == "train" else range(5, 7))]
        return [Problem(f"echo/{split}/{word}", self.name, word, word, max_tokens=4) for word in words]

    def verify(self, problem, completion):
        return RIGHT if completion == problem.answer else WRONG

    def gold(self, problem):
        return problem.answer
"""
SPEC = """\
name: own
env: {{name: "{name}", num_envs: 2, max_frame: 512, max_t: 40, kwargs: {{length: 4}}}}
agent:
  algorithm: {{name: ppo, time_horizon: 64, minibatch_size: 64}}
meta: {{max_session: 1, eval_frequency: 256, save_frequency: 256, eval_episodes: 2, final_episodes: 2}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with a module and a package that hold environments."""
    (tmp_path / "mazes.py").write_text(MAZE)
    (tmp_path / "halls.py").write_text(FUNCTIONAL)
    (tmp_path / "echoes.py").write_text(TASK)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "mazes.py").write_text(MAZE.replace("Corridor-v0", "pack/Corridor-v0"))
    (tmp_path / "broken.py").write_text("import no_such_thing")
    return tmp_path


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What this test imports and registers is forgotten after it."""
    modules, registered = set(sys.modules), dict(gym.registry)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ("mazes", "halls", "echoes", "pack", "broken"):
            del sys.modules[name]
    gym.registry.clear()
    gym.registry.update(registered)


def process(folder: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line as its own process, to which Python gives no working directory to import from."""
    (folder / "own.yaml").write_text(SPEC.format(name=name))
    return operant_warm(*words, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"})


@pytest.mark.parametrize(
    "name",
    [
        "mazes:Corridor",
        pytest.param("mazes:Corridor-v0", marks=pytest.mark.slow),
        pytest.param("mazes:corridor_of_six", marks=pytest.mark.slow),
        pytest.param("pack.mazes.Corridor", marks=pytest.mark.slow),
    ],
)
def test_trains_and_evaluates_without_a_change_to_the_package(folder: Path, name: str):
    trained = process(folder, name, "train", "own.yaml", "--json")
    assert trained.returncode == 0, trained.stderr
    session = next((folder / "runs").rglob("session_0"))
    assert json.loads((session / "run.json").read_text())["spec"]["env"]["name"] == name
    episodes = [json.loads(line) for line in (session / "episodes.jsonl").read_text().splitlines()]
    assert {episode["env"] for episode in episodes} == {name}
    evaluated = process(folder, name, "eval", "own", "--episodes", "2", "--json")
    assert evaluated.returncode == 0, evaluated.stderr


@pytest.mark.slow
def test_a_functional_environment_trains_on_the_engine_of_jax(folder: Path):
    trained = process(folder, "halls:Corridor", "train", "own.yaml", "--json", "-s", "engine=jax")
    assert trained.returncode == 0, trained.stderr
    session = next((folder / "runs").rglob("session_0"))
    episodes = [json.loads(line) for line in (session / "episodes.jsonl").read_text().splitlines()]
    assert {episode["env"] for episode in episodes} == {"halls:Corridor"}


def test_a_language_task_is_checked(folder: Path):
    checked = process(folder, "echoes:Echo", "tasks", "validate", "echoes:Echo", "-a", "word=b", "--json")
    assert checked.returncode == 0, checked.stderr
    (report,) = json.loads(checked.stdout)["tasks"]
    gold = report["kinds"]["gold"]["count"]
    assert (report["problems"], gold, report["sound"]) == ({"train": 4, "eval": 2}, 6, True)


@pytest.mark.usefixtures("alone")
def test_an_installed_package_offers_one_by_entry_point(
    folder: Path, operant: Operant, monkeypatch: pytest.MonkeyPatch
):
    facts = folder / "mazes-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: mazes\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[operant.envs]\ncorridor = mazes:Corridor\n")
    (folder / "own.yaml").write_text(SPEC.format(name="corridor"))
    monkeypatch.syspath_prepend(folder)
    checked = operant("check", "own.yaml")
    assert checked.code == 0, checked.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("labyrinths.Corridor", "there is no module 'labyrinths', neither installed nor in"),
        ("pack.halls.Corridor", "there is no module 'pack.halls'"),
        ("mazes.Coridor", "mazes has no Coridor\n  try: did you mean Corridor?"),
        ("mazes.NOT_AN_ENVIRONMENT", "mazes:NOT_AN_ENVIRONMENT is not a gymnasium.Env"),
        ("mazes:Corridor-v1", "mazes registers no environment called 'Corridor-v1'\n  try: it registers Corridor-v0"),
        ("mazes:Coridor", "mazes has no Coridor\n  try: did you mean Corridor?"),
        ("echoes:Echo", "echoes:Echo is not a gymnasium.Env or a function that makes one but a Task"),
        ("halls:Corridor", "halls:Corridor is not a gymnasium.Env or a function that makes one but a FunctionalEnv"),
        ("broken.Corridor", "broken cannot be imported: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("mazes.Forgetful", "mazes.Forgetful ignores its seed"),
        ("mazes.Crooked", "gave an observation of shape (3,), but its observation_space is"),
        ("mazes.OldStyle", "mazes.OldStyle cannot be played"),
    ],
)
@pytest.mark.usefixtures("alone")
def test_a_mistake_is_told_before_any_work(folder: Path, operant: Operant, name: str, words: str):
    (folder / "own.yaml").write_text(SPEC.format(name=name))
    refused = operant("train", "own.yaml")
    assert refused.code == 2
    assert words in refused.err
    assert "Traceback" not in refused.err
    assert not (folder / "runs").exists()


@pytest.mark.usefixtures("alone")
def test_an_argument_that_its_class_does_not_take(folder: Path, operant: Operant):
    (folder / "own.yaml").write_text(SPEC.format(name="mazes.Corridor"))
    refused = operant("train", "own.yaml", "-s", "env.kwargs={width: 3}")
    assert refused.code == 2
    assert "env.kwargs: mazes.Corridor does not accept {'width': 3}" in refused.err
