"""The real package verifiers, both generations: an outsider's environments train here, and ours run there.

`OPERANT_VERIFIERS_PYTHON` names interpreters that have it, separated as in PATH; one generation is skipped where none
has it. For ours to run there, they also need what Operant's tasks import (pydantic, numpy, ruamel.yaml).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from operant.envs.text.tasks import make_task
from operant.envs.verifiers.task import VerifiersTask
from operant.errors import UsageError
from operant.run.metrics import read_rows

pytest.importorskip("transformers")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
OUTSIDER = Path(__file__).parent / "outsider"
SPEC = """
name: outsider
env:
  name: verifiers:{environment}
  max_frame: {frames}
  text: {{arguments: {{python: {python}}}, max_tokens: 4, dialogue: {{concurrency: 64, strategy: {strategy}}}}}
agent:
  algorithm: {{name: grpo, group_size: 8, batch_size: 64}}
  model: {{source: tiny, tiny: {{layers: 1, width: 64, heads: 2, context: 64}}, optimizer: {{lr: 0.003}}}}
meta: {{max_session: 1, log_frequency: 64, eval_frequency: {frames}, save_frequency: {frames}, eval_episodes: 12}}
"""
SERVED = """
name: ours
env:
  name: mixture
  max_frame: 32
  text:
    max_tokens: 6
    mixture:
      - {name: copy, arguments: {style: bare, letters: 2}}
      - {name: guess, arguments: {style: bare, numbers: 4, turns: 3}}
agent:
  algorithm: {name: grpo, group_size: 4, batch_size: 32, warmup: {updates: 120, batch_size: 32}}
  model: {source: tiny, tiny: {layers: 2, width: 64, heads: 2, context: 96}, optimizer: {lr: 0.0001}}
meta: {max_session: 1, log_frequency: 32, eval_frequency: 32, save_frequency: 32, eval_episodes: 4, final_episodes: 4}
"""
ITEMS = 16
ARGUMENTS = {
    "copy": {"style": "bare", "letters": 2, "eval_size": ITEMS},
    "guess": {"style": "bare", "numbers": 4, "turns": 3, "eval_size": ITEMS},
}


@cache
def pythons() -> dict[str, str]:
    """Interpreters by the generation of the verifiers that they have."""
    found: dict[str, str] = {}
    named = os.environ.get("OPERANT_VERIFIERS_PYTHON", sys.executable)
    for python in named.split(os.pathsep):
        words = "from importlib.metadata import version; print(version('verifiers'))"
        said = subprocess.run([python, "-c", words], capture_output=True, text=True, check=False).stdout.strip()
        if said:
            old = tuple(map(int, said.split(".")[:2])) < (0, 4)
            found.setdefault("classic" if old else "v1", python)
    return found


def python_of(generation: str) -> str:
    if generation not in pythons():
        pytest.skip(f"no Python with verifiers of the {generation} API (OPERANT_VERIFIERS_PYTHON)")
    return pythons()[generation]


def operant(folder: Path, *words: str) -> str:
    """The command line, in a folder that sees the outsider's modules."""
    done = subprocess.run(
        [sys.executable, "-m", "operant", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{OUTSIDER}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(params=["classic", "v1"])
def generation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYTHONPATH", str(OUTSIDER))
    return request.param


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A run and the address at which it is served."""
    (tmp_path / "ours.yaml").write_text(SERVED)
    operant(tmp_path, "train", "ours.yaml", "--plain")
    command = [sys.executable, "-m", "operant", "serve", "ours", "--port", "0", "--template", "raw", "--json"]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=here, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        told = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
        try:
            yield tmp_path, told["url"]
        finally:
            server.terminate()


ENVIRONMENTS = {"classic": "half_alphabet", "v1": "letter_tasks"}


def test_rows_and_arguments(generation: str) -> None:
    python, name = python_of(generation), f"verifiers:{ENVIRONMENTS[generation]}"
    task = make_task(name, {"python": python, "rows": 20})
    assert isinstance(task, VerifiersTask)
    assert (len(task.problems("train")), len(task.problems("eval"))) == (16, 4)
    assert task.problems("eval")[0].prompt == "early:"
    assert task.facts["generation"] == generation
    with pytest.raises(UsageError, match="has no argument 'row'") as error:
        make_task(name, {"python": python, "row": 20}).problems("train")
    assert "rows" in (error.value.remedy or "")


def test_an_environment_that_is_not_installed(generation: str) -> None:
    task = make_task("verifiers:someone/no-such-game", {"python": python_of(generation)})
    with pytest.raises(UsageError, match="no environment someone/no-such-game is installed") as error:
        task.problems("train")
    assert "pip install no-such-game" in (error.value.remedy or "")


def test_a_classic_environment_where_there_is_only_v1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(OUTSIDER))
    with pytest.raises(UsageError, match="half_alphabet is an environment of the classic API") as error:
        make_task("verifiers:half_alphabet", {"python": python_of("v1")}).problems("train")
    assert "'verifiers<0.4'" in (error.value.remedy or "")


@pytest.mark.parametrize(
    ("kind", "environment", "frames", "strategy"),
    [
        ("classic", "half_alphabet", 3200, "interleaved"),
        ("classic", "half_alphabet", 3200, "branching"),
        ("v1", "letter_tasks", 1920, "interleaved"),
    ],
)
def test_an_outsiders_environment_trains_unchanged(
    kind: str, environment: str, frames: int, strategy: str, tmp_path: Path
) -> None:
    spec = SPEC.format(environment=environment, frames=frames, python=python_of(kind), strategy=strategy)
    (tmp_path / "outsider.yaml").write_text(spec)
    operant(tmp_path, "train", "outsider.yaml", "--plain")
    (session,) = (tmp_path / "runs" / "outsider").glob("*/trial_000/session_0")
    rows = list(read_rows(session / "metrics.jsonl"))
    assert rows[0]["eval/score"] < 0.2
    assert rows[-1]["final/score"] > 0.8
    assert max(row.get("mismatch/kl", 0.0) for row in rows) < 1e-4
    assert all(row.get("rollout/errors", 0.0) == 0 for row in rows)


def test_several_turns_of_a_v1_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{OUTSIDER}")
    arguments = ("-a", f"python={python_of('v1')}", "-a", "rows=10", "-a", "max_tokens=4")
    operant(tmp_path, "eval", "tiny", "--tasks", "verifiers:guess_room", *arguments, "--limit", "2", "--out", "told")
    (file,) = (tmp_path / "told").glob("*.jsonl")
    for row in map(json.loads, file.read_text().splitlines()):
        assert [turn["role"] for turn in row["turns"]] == ["user", "assistant", "user", "assistant"]


def test_ours_under_its_own_runner_scores_as_here(generation: str, served: tuple[Path, str]) -> None:
    folder, url = served
    python = python_of(generation)
    told = [f"--argument={task}.{key}={value}" for task, given in ARGUMENTS.items() for key, value in given.items()]
    operant(folder, "eval", "ours", "--tasks", "copy,guess", *told)
    (file,) = (folder / "runs" / "ours").glob("*/trial_000/session_0/eval.jsonl")
    here = {row["item"]: row["score"] for row in map(json.loads, file.read_text().splitlines())}
    there = {}
    for task in ARGUMENTS:
        there |= (_classic if generation == "classic" else _modern)(python, folder, url, task)
    assert len(there) == 2 * ITEMS
    assert there == here
    assert len(set(here.values())) > 2


def _classic(python: str, folder: Path, url: str, task: str) -> dict[str, float]:
    out = folder / f"classic-{task}"
    given = json.dumps({"task": task, **ARGUMENTS[task]})
    words = ("-a", given, "-m", "ours", "-b", url, "-k", "NO_KEY", "-n", str(ITEMS), "-r", "1", "-T", "0")
    _evaluate(python, folder, "operant_tasks", *words, "-s", "-d", "-o", str(out), "--disable-env-server")
    (file,) = out.glob("evals/*/*/results.jsonl")
    return {row["info"]["id"]: row["reward"] for row in map(json.loads, file.read_text().splitlines())}


def _modern(python: str, folder: Path, url: str, task: str) -> dict[str, float]:
    out = folder / f"v1-{task}"
    given = ("--env.taskset.task-name", task, "--env.taskset.arguments", json.dumps(ARGUMENTS[task]))
    asked = ("-m", "ours", "--client.base-url", url, "--client.api-key-var", "NO_KEY", "--sampling.temperature", "0")
    _evaluate(python, folder, "operant_tasks", *given, *asked, "--no-push", "--no-rich", "-o", str(out))
    (file,) = out.glob("*/traces.jsonl")
    traces = [trace for line in file.read_text().splitlines() for trace in json.loads(line)["traces"]]
    assert not any(trace["errors"] for trace in traces)
    return {trace["task"]["data"]["id"]: _reward(trace) for trace in traces}


def _reward(trace: dict[str, Any]) -> float:
    return sum(reward["score"] * reward["weight"] for reward in trace["rewards"].values())


def _evaluate(python: str, folder: Path, *words: str) -> None:
    """verifiers' own runner, which sees Operant by its path."""
    program = str(Path(python).parent / "vf-eval")
    here = {**os.environ, "PYTHONPATH": str(ROOT), "NO_KEY": "none"}
    done = subprocess.run([program, *words], cwd=folder, env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
