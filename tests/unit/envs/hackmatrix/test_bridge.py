"""The bridge to a program that speaks the protocol, good or bad."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from operant.envs.check import check_env
from operant.envs.hackmatrix.faces.bridge import HackMatrixBridge
from operant.envs.hackmatrix.faces.gym import HackMatrix
from operant.errors import RunError, UsageError
from operant.spec.settings.sections import EnvSpec
from tests.unit.envs.hackmatrix.forms import ROOT, SERVE


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HACKMATRIX_BINARY", shlex.join(SERVE))


def script(folder: Path, text: str) -> str:
    """A program that is not the game."""
    path = folder / "game"
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("form", ["flat", "dict"])
def test_the_bridge_plays_the_same_game_as_the_environment(form: str) -> None:
    far, near = gym.make("operant/HackMatrixBridge-v0", observation=form), HackMatrix(form)  # type: ignore[arg-type]
    for seed in range(3):
        (seen, info), (wanted, expected) = far.reset(seed=seed), near.reset(seed=seed)
        over, k = False, 0
        while not over and k < 60:
            _assert_same(seen, wanted)
            assert info["action_mask"].tolist() == expected["action_mask"].tolist()
            legal = np.flatnonzero(info["action_mask"])
            action = int(legal[7 * k % len(legal)])
            seen, reward, over, cut, info = far.step(action)
            wanted, *rest, expected = near.step(action)
            assert (reward, over, cut) == (pytest.approx(rest[0]), rest[1], rest[2])
            assert info["reward_parts"] == pytest.approx(expected["reward_parts"])
            k += 1
    far.close()


def _assert_same(seen: object, wanted: object) -> None:
    if isinstance(wanted, dict) and isinstance(seen, dict):
        for name, part in wanted.items():
            np.testing.assert_allclose(seen[name], part, rtol=1e-6)
            assert seen[name].dtype == part.dtype
    else:
        np.testing.assert_allclose(seen, wanted, rtol=1e-6)  # type: ignore[arg-type]


def test_no_binary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HACKMATRIX_BINARY")
    with pytest.raises(UsageError, match="HACKMATRIX_BINARY is not set"):
        HackMatrixBridge()
    with pytest.raises(UsageError, match="/no/such/game cannot be started"):
        HackMatrixBridge("/no/such/game")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import sys; sys.exit('out of luck')", "ended with status 1; it said: out of luck"),
        ("input(); print('Hello, player!')", "what is not JSON: Hello, player!"),
        ("input(); print('[1, 2]')", "what is no object"),
        ("input(); print('{}')", "makes no sense as observation: KeyError: 'observation'"),
        ('input(); print(\'{"error": "No executor"}\')', "refused .*: No executor"),
        ("import time; time.sleep(60)", "gave no answer to .*reset.* within 0.5 s"),
        ("import os, time; os.close(1); time.sleep(60)", "closed its output"),
        ("input(); print('{\"observation', end='', flush=True); import time; time.sleep(60)", "gave no answer"),
    ],
)
def test_a_program_that_fails(tmp_path: Path, text: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operant.envs.hackmatrix.faces.json_process.GRACE_SECONDS", 0.5)
    patience = 0.5 if "sleep" in text else 10
    env = HackMatrixBridge(script(tmp_path, text), timeout=patience)
    try:
        with pytest.raises(RunError, match=told):
            env.reset(seed=1)
    finally:
        env.close()
        env.close()


def test_a_mask_beyond_the_actions(tmp_path: Path) -> None:
    text = (
        "import json, sys\n"
        "from operant.envs.hackmatrix.faces.json_lines import Server\n"
        "server = Server()\n"
        "for line in sys.stdin.buffer:\n"
        "    asked = json.loads(line)['action']\n"
        "    print('{\"validActions\": [0, 28]}' if asked == 'getValidActions' else server.reply(line), flush=True)\n"
    )
    env = HackMatrixBridge(script(tmp_path, text))
    with pytest.raises(RunError, match="makes no sense as getValidActions"):
        env.reset(seed=1)
    env.close()


def test_a_program_that_ignores_its_seed_is_refused_before_any_training(tmp_path: Path) -> None:
    text = (
        "import json, sys\n"
        "from operant.envs.hackmatrix.faces.json_lines import Server\n"
        "server = Server()\n"
        "for line in sys.stdin.buffer:\n"
        "    print(server.reply(line.replace(b'seed', b'luck')), flush=True)\n"
    )
    spec = EnvSpec(name="operant/HackMatrixBridge-v0", max_frame=100, kwargs={"binary": script(tmp_path, text)})
    with pytest.raises(UsageError, match="ignores its seed"):
        check_env(spec)
    check_env(EnvSpec(name="operant/HackMatrixBridge-v0", max_frame=100)).close()
