"""The files of docs/examples, in a folder outside the package: trained by name, killed, resumed, explained, mistyped.

The commands are real processes, whose working directory is that folder. The run that is killed and its resume start
from nothing; the others are forked from a process that has imported torch.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.cli.app import run
from operant.run.layout import EPISODES_FILE, LOCK_FILE, METRICS_FILE
from operant.run.progress import without_timing
from tests.processes import wait_until
from tests.warm import operant_warm

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SPEC = """\
env: {name: CartPole-v1, num_envs: 4, max_frame: 3072}
agent:
  algorithm: {name: "my_algorithm:MyPpo", clip_high: 0.4}
  net: {type: "my_network:ResidualNet", width: 32}
meta:
  max_session: 1
  threads: 1
  log_frequency: 256
  eval_frequency: 1536
  save_frequency: 1024
  eval_episodes: 2
  final_episodes: 3
"""
SCRIPT = """\
import operant
if __name__ == "__main__":
    trial = operant.train("spec.yaml", out="from_python", progress=False)
    print(trial.score.point)
"""
SESSION = Path("trial_000") / "session_0"


def operant(*words: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a command prints, and how it ends."""
    return subprocess.run(
        [sys.executable, "-m", "operant", *words], cwd=cwd, env=environment(path), capture_output=True, text=True
    )


def warm(*words: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same from a fork server."""
    return operant_warm(*words, cwd=cwd, env=environment(path))


def environment(path: Path | None = None) -> dict[str, str]:
    """That of this process, with this repository's package and perhaps another folder to import from."""
    folders = [str(ROOT), *([str(path)] if path else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


def folder_of_parts(path: Path) -> Path:
    """A copy of the examples with a spec that names them."""
    shutil.copytree(EXAMPLES, path, ignore=shutil.ignore_patterns("__pycache__"))
    (path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    return path


def test_the_pages_show_these_files():
    kinds = ("algorithm", "network", "environment", "schedule", "reward")
    names = [*(f"own-{kind}.md" for kind in kinds), "trackers.md"]
    pages = [(ROOT / "docs" / "howto" / name).read_text() for name in names]
    for file in EXAMPLES.glob("*.py"):
        assert f'--8<-- "{file.name}"' in "".join(pages)
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 150
    assert "base_path: [docs/examples, benchmarks]" in (ROOT / "mkdocs.yml").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_parts(tmp_path_factory.mktemp("own") / "lab")


@pytest.fixture(scope="module")
def whole(folder: Path) -> Path:
    """A run that nothing disturbed."""
    done = warm("train", "spec.yaml", "--out", "whole", "--plain", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "whole"


def outcome(run: Path) -> tuple[dict[str, bytes], list[dict], list[dict]]:
    """The last checkpoint byte for byte, and the rows and episodes without times."""
    session = run / SESSION
    arrays = {file.name: file.read_bytes() for file in (session / "checkpoints" / "latest").glob("*.safetensors")}
    assert arrays
    rows, episodes = (
        [without_timing(json.loads(line)) for line in (session / name).read_text().splitlines()]
        for name in (METRICS_FILE, EPISODES_FILE)
    )
    return arrays, rows, episodes


@pytest.mark.slow
def test_trained_from_python_is_the_same_run(folder: Path, whole: Path):
    (folder / "five_lines.py").write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "five_lines.py"], cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) > 0
    assert outcome(folder / "from_python") == outcome(whole)


def test_killed_and_resumed_from_another_folder_is_the_same_run(folder: Path, whole: Path, tmp_path: Path):
    command = [sys.executable, "-m", "operant", "train", "spec.yaml", "--out", "broken", "--plain"]
    launcher = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
    session = folder / "broken" / SESSION
    rows = session / METRICS_FILE
    assert wait_until(lambda: rows.exists() and rows.read_bytes().count(b"\n") >= 3, seconds=60)
    os.kill(json.loads((session / LOCK_FILE).read_text())["pid"], signal.SIGKILL)
    launcher.wait(60)
    assert rows.read_bytes().count(b"\n") < 13, "it ended before it was killed"
    done = operant("resume", str(folder / "broken"), "--plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert outcome(folder / "broken") == outcome(whole)


def test_a_resume_tells_of_a_file_that_changed(tmp_path: Path):
    folder = folder_of_parts(tmp_path / "lab")
    assert warm("train", "spec.yaml", "--out", "run", "--plain", "--until", "1024", cwd=folder).returncode == 0
    file = folder / "my_algorithm.py"
    file.write_text(file.read_text(encoding="utf-8") + "\n# one line more\n", encoding="utf-8")
    assert warm("resume", "run", "--plain", "--until", "2048", cwd=folder).returncode == 0
    events = (folder / "run" / SESSION / "events.jsonl").read_text(encoding="utf-8")
    assert "my_algorithm.py has changed since" in events
    assert "my_network.py has changed" not in events
    parts = json.loads((folder / "run" / SESSION / "run.json").read_text(encoding="utf-8"))["parts"]
    assert [part["module"] for part in parts] == ["my_algorithm", "my_network"]


@pytest.mark.slow
def test_a_fork_may_change_what_is_free_and_nothing_else(folder: Path, whole: Path):
    refused = warm("resume", "whole", "-s", "agent.net.blocks=3", cwd=folder)
    assert refused.returncode == 2
    assert "agent.net.blocks cannot change in a forked run, from 2 to 3: the weights have this shape" in refused.stderr
    fork = warm(
        "resume", "whole", "-s", "agent.algorithm.clip_low=0.1", "-s", "env.max_frame=3328", "--plain", cwd=folder
    )
    assert fork.returncode == 0, fork.stderr


@pytest.mark.slow
def test_it_is_listed_shown_and_evaluated(folder: Path, whole: Path):
    assert "whole" in warm("runs", "--root", ".", cwd=folder).stdout
    assert warm("show", "whole", cwd=folder).returncode == 0
    played = warm("eval", "whole", "--episodes", "2", cwd=folder)
    assert played.returncode == 0, played.stderr


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This process in the folder, which forgets what it has imported from there."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield folder
    for name in ("my_algorithm", "my_network"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("words", [("algorithm", "my_algorithm:MyPpo"), ("my_algorithm:MyPpo",)])
def test_help_explains_its_settings(here: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    assert run(["help", *words]) == 0
    text = capsys.readouterr().out
    assert text.startswith("algorithm my_algorithm:MyPpo: PPO with a clip range for each direction.")
    assert "How far the probability ratio may rise." in text


@pytest.mark.parametrize(
    ("setting", "problem", "hint"),
    [
        (
            "agent.algorithm.clipp_high=0.3",
            "agent.algorithm.clipp_high is not a setting of my_algorithm:MyPpo",
            "clip_high",
        ),
        ("agent.algorithm.clip_high=-1", "agent.algorithm.clip_high = -1 is out of range", "above 0, at most 10"),
        ("agent.algorithm.name=my_algorithm:MyPpoo", "my_algorithm has no MyPpoo", "did you mean MyPpo?"),
        ("agent.algorithm.name=my_algoritm:MyPpo", "there is no module 'my_algoritm'", "run from the folder"),
        ("agent.algorithm.name=my_algorithm:gae", "my_algorithm:gae is a function", "settings.algorithm.Algorithm"),
        ("agent.net.widht=3", "agent.net.widht is not a setting of my_network:ResidualNet", "width"),
        ("engine=jax", 'engine = "jax" has no learner of my_algorithm:MyPpo', "auto, or torch"),
    ],
)
def test_mistakes_are_told_with_a_caret(
    here: Path, setting: str, problem: str, hint: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["check", "spec.yaml", "-s", setting]) == 2
    told = capsys.readouterr().err
    assert problem in told
    assert hint in told
    assert "^" in told


@pytest.mark.slow
def test_an_entry_point_gives_it_a_name(folder: Path, tmp_path: Path):
    metadata = tmp_path / "my_parts-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n", encoding="utf-8")
    groups = {"algorithms": "clip_higher = my_algorithm:MyPpo", "nets": "residual = my_network:ResidualNet"}
    lines = "".join(f"[operant.{group}]\n{line}\n" for group, line in groups.items())
    (metadata / "entry_points.txt").write_text(lines, encoding="utf-8")
    assert "clip_higher" in warm("help", "algorithm", cwd=folder, path=tmp_path).stdout
    names = ("-s", "agent.algorithm.name=clip_higher", "-s", "agent.net.type=residual")
    done = warm("check", "spec.yaml", *names, cwd=folder, path=tmp_path)
    assert done.returncode == 0, done.stderr
    slip = warm("check", "spec.yaml", "-s", "agent.algorithm.name=clip_hihger", cwd=folder, path=tmp_path)
    assert "did you mean clip_higher?" in slip.stderr


@pytest.mark.slow
def test_an_own_environment_and_every_head_on_an_own_network(folder: Path):
    """A Q-network, a policy beside critics, and a policy and value on shared layers."""
    corridor = ("-s", "env.name=my_environment:Corridor", "-s", "env.max_t=60", "-s", "env.max_frame=512")
    start = ("-s", "agent.algorithm.training_start=64")
    choices = {"dqn": start, "sac": start, "ppo": ("-s", "agent.net.shared=true")}
    (folder / "plain.yaml").write_text(SPEC.replace('{name: "my_algorithm:MyPpo", clip_high: 0.4}', "{name: ppo}"))
    for name, more in choices.items():
        words = ("plain.yaml", "-s", f"agent.algorithm.name={name}", *corridor, *more, "--out", f"of_{name}", "--plain")
        done = warm("train", *words, cwd=folder)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_compiled_algorithm_by_subclass(folder: Path):
    pytest.importorskip("jax")
    agent = 'algorithm: {name: "my_jax_algorithm:MyJaxPpo", time_horizon: 32, minibatch_size: 32, clip_high: 0.4}'
    text = SPEC.replace('algorithm: {name: "my_algorithm:MyPpo", clip_high: 0.4}', agent).replace("  threads: 1\n", "")
    (folder / "jax.yaml").write_text(text.replace('  net: {type: "my_network:ResidualNet", width: 32}\n', ""))
    assert warm("train", "jax.yaml", "--out", "jax_whole", "--plain", cwd=folder).returncode == 0
    assert warm("train", "jax.yaml", "--out", "jax_two", "--plain", "--until", "1536", cwd=folder).returncode == 0
    done = warm("resume", "jax_two", "--plain", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert outcome(folder / "jax_two") == outcome(folder / "jax_whole")
