"""Exported files act as the policy does, and run without the library that trained it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import operant
from operant.api import export as exporting
from operant.errors import RunError, UsageError
from operant.policy import files
from operant.policy.array_policy import ArrayPolicy
from operant.policy.network import Network
from tests.unit.api.conftest import Trained

SLOW = pytest.mark.slow
POLICIES = ("ppo", "sac", "ppo-gru", "jax-ppo")
POLICIES += tuple(
    pytest.param(name, marks=SLOW) for name in ("ppo-continuous", "dqn", "ppo-lstm", "jax-sac", "jax-dqn", "jax-lstm")
)
ONNX = """
import json, sys
import numpy as np, onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
given = np.load(sys.argv[2])
hidden = np.zeros((given["obs"].shape[1], int(sys.argv[3])), np.float32)
actions = []
for obs, begun in zip(given["obs"], given["begun"]):
    hidden = np.where(begun[:, None], np.float32(0), hidden)
    inputs = {"obs": obs, "hidden": hidden} if hidden.size else {"obs": obs}
    action, output, *after = session.run(None, inputs)
    hidden = after[0] if after else hidden
    actions.append(action)
np.save(sys.argv[4], np.stack(actions))
print(json.dumps([name for name in ("torch", "jax", "operant") if name in sys.modules]))
"""
NUMPY = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import policy

loaded = policy.load(sys.argv[1] + "/policy.npz")
np.save(sys.argv[3], np.stack([loaded.act(obs) for obs in np.load(sys.argv[2])]))
assert not {"torch", "jax", "operant"} & set(sys.modules)
"""

OTHERS = ("sac", "dqn", "ppo-gru", "ppo-lstm", "jax-ppo")


@pytest.fixture(params=exporting.FORMATS)
def to(request: pytest.FixtureRequest) -> str:
    if request.param == "onnx":
        pytest.importorskip("onnxruntime")
    return request.param


@pytest.mark.parametrize("kind", POLICIES)
def test_every_policy_in_every_format_is_equal_to_a_hundred_thousandth(
    trained: Trained, tmp_path: Path, kind: str, to: str
):
    made = operant.export(trained(kind), to=to, out=tmp_path / "policy")
    assert made.path == tmp_path / f"policy{files.SUFFIXES[to]}"
    assert made.observations == 1000
    assert made.difference <= 1e-5
    assert sorted(tmp_path.iterdir()) == sorted(made.files)


@pytest.mark.parametrize("kind", ["ppo", *(pytest.param(name, marks=SLOW) for name in OTHERS)])
def test_onnx_runs_where_torch_is_not_imported(trained: Trained, tmp_path: Path, kind: str):
    pytest.importorskip("onnxruntime")
    session = trained(kind)
    made = operant.export(session, to="onnx", out=tmp_path / "policy.onnx", checkpoint="latest")
    policy = session.policy()
    assert isinstance(policy, ArrayPolicy)
    recording = policy.record(50, 20, seed=5)
    np.savez(tmp_path / "given.npz", obs=recording.obs, begun=recording.begun)
    arguments = [made.path, tmp_path / "given.npz", policy.network().hidden_size, tmp_path / "actions.npy"]
    result = subprocess.run(
        [sys.executable, "-c", ONNX, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout) == []
    expected = []
    for obs, begun in zip(recording.obs, recording.begun, strict=True):
        policy.reset(begun)
        expected.append(policy.act(obs))
    found = np.load(tmp_path / "actions.npy")
    assert found.dtype == expected[0].dtype
    assert np.abs(found - np.stack(expected)).max() <= 1e-5


@pytest.mark.parametrize("kind", ["ppo-continuous", "ppo-gru"])
def test_the_numpy_export_brings_its_own_reader(trained: Trained, tmp_path: Path, kind: str):
    session = trained(kind)
    operant.export(session, to="numpy", out=tmp_path / "policy.npz", checkpoint="latest")
    policy: Any = session.policy()
    obs = policy.record(40, 5, seed=6).obs
    np.save(tmp_path / "obs.npy", obs)
    arguments = [tmp_path, tmp_path / "obs.npy", tmp_path / "actions.npy"]
    subprocess.run([sys.executable, "-c", NUMPY, *map(str, arguments)], check=True)
    expected = np.stack([policy.act(each) for each in obs])
    assert np.abs(np.load(tmp_path / "actions.npy") - expected).max() <= 1e-5


def test_a_file_that_differs_is_not_written(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session = trained("sac")
    write = files.write

    def wrong(network: Network, to: str, path: Path) -> list[Path]:
        layers = [dict(layer) for layer in network.layers]
        layers[0]["bias"] = layers[0]["bias"] + np.float32(1e-2)
        changed = Network(**{**vars(network), "layers": layers})
        return write(changed, to, path)

    monkeypatch.setattr(files, "write", wrong)
    with pytest.raises(RunError, match=r"differs from the trained one by .*, more than 1e-05; nothing was written"):
        operant.export(session, to="numpy", out=tmp_path / "policy.npz")
    assert list(tmp_path.iterdir()) == []


def test_the_page_about_export_runs(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session = trained("dqn")
    monkeypatch.chdir(tmp_path)
    operant.export(session, to="numpy", out="pole.npz", checkpoint="latest")
    page = Path(__file__).parents[3].joinpath("docs/howto/export.md").read_text()
    code = [part.partition("```")[0] for part in page.split("```python\n")[1:]]
    assert len(code) == 3
    names: dict[str, Any] = {}
    exec("\n".join(code).replace('"ppo_cartpole"', repr(str(session.path))), names)
    policy: Any = session.policy()
    obs = policy.record(50, 20, seed=1).obs.reshape(1000, 4)
    assert np.array_equal(names["pole"](obs), policy.act(obs))
    assert np.array_equal(names["model"].predict(obs)[0], policy.act(obs))


def test_nothing_is_overwritten(trained: Trained, tmp_path: Path):
    (tmp_path / "policy.py").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        operant.export(trained("ppo"), to="numpy", out=tmp_path / "policy")
    with pytest.raises(UsageError, match="folder does not exist"):
        operant.export(trained("ppo"), to="numpy", out=tmp_path / "there" / "policy")
    with pytest.raises(UsageError, match="there is no format 'tflite'"):
        operant.export(trained("ppo"), to="tflite", out=tmp_path / "other")


def test_random_play_has_nothing_to_export(trained: Trained, tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be exported"):
        operant.export(trained("random"), to="numpy", out=tmp_path / "policy")
