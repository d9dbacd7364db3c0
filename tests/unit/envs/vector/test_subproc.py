"""VectorEnv in worker processes: the same bits as in one, and nothing left behind however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.envs.vector.fp_mode import adopt_arithmetic_mode, arithmetic_mode, flushes_denormals
from operant.envs.vector.subproc import SubprocVectorEnv
from operant.errors import RunError
from operant.run.seeding import Seeds
from operant.spec.settings.sections import EnvSpec
from tests.processes import lives, wait_until

ROOT = Path(__file__).parents[3]


class Masked(gym.Env):
    """Counts to five; the mask allows the action that matches the parity of the count. `fails_at` raises there."""

    observation_space = gym.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, fails_at: int = 99, dies_at: int = 99, render_mode: str | None = None) -> None:
        self.fails_at, self.dies_at = fails_at, dies_at

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(3))
        return np.array([self.at], np.float32), {"action_mask": np.array([self.at % 2 == 0, self.at % 2 == 1])}

    def step(self, action):
        self.at += 1
        if self.at == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.at == self.fails_at:
            raise ValueError("the count went wrong")
        mask = np.array([self.at % 2 == 0, self.at % 2 == 1])
        return np.array([self.at], np.float32), float(action), self.at >= 5, False, {"action_mask": mask}


def vector(how: str, name: str, num: int = 5, **spec) -> AutoresetVectorEnv:
    seeds = Seeds(5)
    settings = EnvSpec.model_validate({"name": name, "vectorization": how, **spec})
    return AutoresetVectorEnv(settings, num, lambda i, k: seeds.integer("env", i, k))


def actions_for(env: AutoresetVectorEnv, rng: np.random.Generator) -> np.ndarray:
    if env.actions.discrete:
        return rng.integers(env.actions.size, size=env.num)
    return rng.uniform(-1, 1, (env.num, env.actions.size))


def play_six(env: AutoresetVectorEnv, playing: np.ndarray) -> None:
    for _ in range(6):
        env.step(np.zeros(env.num, np.int64), playing)


def mask_path() -> str:
    return f"{Masked.__module__}.{Masked.__qualname__}"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers look for modules where this process does."""
    monkeypatch.syspath_prepend(str(ROOT))


OTHERS = ("Pendulum-v1", "HalfCheetah-v5", "BipedalWalker-v3", "ALE/Breakout-v5")


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "masked", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
def test_processes_give_the_bits_of_serial(name):
    name = mask_path() if name == "masked" else name
    limit = {} if "." in name else {"max_t": 30}
    serial, processes = vector("serial", name, **limit), vector("processes", name, **limit)
    assert isinstance(processes.env, SubprocVectorEnv)
    rng, dice = np.random.default_rng(3), np.random.default_rng(4)
    for t in range(70):
        actions = actions_for(serial, rng)
        playing = None if t % 3 else dice.random(5) < 0.5
        processes.send(actions, playing)
        a, b = serial.step(actions, playing), processes.receive()
        for field in ("obs", "next_obs", "reward", "terminated", "truncated", "mask", "next_mask"):
            assert np.array_equal(getattr(a, field), getattr(b, field)), (t, field)
        assert a.ended == b.ended
    states = serial.state(), processes.state()
    assert states[0].keys() == states[1].keys()
    assert all(np.array_equal(states[0][key], states[1][key]) for key in states[0])
    processes.close()


def test_what_was_saved_under_one_way_is_restored_under_the_other():
    serial, processes = vector("serial", "HalfCheetah-v5"), vector("processes", "HalfCheetah-v5")
    rng = np.random.default_rng(0)
    for _ in range(25):
        processes.step(actions_for(processes, rng))
    serial.restore(processes.state())
    for _ in range(10):
        actions = actions_for(serial, rng)
        assert np.array_equal(serial.step(actions).obs, processes.step(actions).obs)
    fresh = vector("processes", "HalfCheetah-v5")
    fresh.restore(serial.state())
    assert np.array_equal(fresh.obs, serial.obs)
    processes.close()
    fresh.close()


def test_outcomes_are_the_callers_to_keep():
    env = vector("processes", "CartPole-v1")
    first = env.step(np.zeros(5, np.int64))
    kept = first.next_obs.copy()
    env.step(np.ones(5, np.int64))
    assert np.array_equal(first.next_obs, kept)
    env.close()


@pytest.mark.parametrize("index", [0, 4], ids=["in this process", "in a worker"])
def test_an_environment_that_raises_is_named_with_its_cause(index):
    env = vector("processes", mask_path(), kwargs={"fails_at": 4})
    playing = np.arange(5) == index
    with pytest.raises(RunError, match=rf"Masked failed in environment {index} of 5: ValueError: the count went wrong"):
        play_six(env, playing)
    env.close()


def test_a_worker_that_dies_is_named_with_its_signal():
    env = vector("processes", mask_path(), kwargs={"dies_at": 4})
    with pytest.raises(RunError, match=r"environments 2 to 4 of 5 died \(SIGKILL\)"):
        play_six(env, np.arange(5) == 4)
    env.close()


def test_a_worker_takes_over_how_denormal_numbers_are_treated():
    before = arithmetic_mode()
    import torch

    torch.set_flush_denormal(True)
    flushing = arithmetic_mode()
    adopt_arithmetic_mode(before)
    assert not flushes_denormals()
    adopt_arithmetic_mode(flushing)
    assert flushes_denormals()
    adopt_arithmetic_mode(before)


PARENT = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start its background jobs without one
import numpy as np
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.spec.settings.sections import EnvSpec
env = AutoresetVectorEnv(EnvSpec(name="CartPole-v1", vectorization="processes"), 6, lambda i, k: i + 10 * k)
print(*(worker.process.pid for worker in env.env._workers), flush=True)
end = time.monotonic() + 60  # should this test itself be killed
while time.monotonic() < end:
    env.step(np.zeros(6, np.int64))
"""


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="looks into Linux's /dev/shm and /proc")
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGINT, signal.SIGTERM))],
)
def test_no_worker_and_no_shared_memory_outlive_the_parent(number):
    before = set(os.listdir("/dev/shm"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPERANT_CORES": "3"}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # A shell's background jobs ignore Ctrl-C, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    assert all(lives(pid) for pid in pids)
    parent.send_signal(number)
    try:
        parent.communicate(timeout=20)
    finally:
        parent.kill()
    assert wait_until(lambda: not any(map(lives, pids))), "a worker outlived its parent"
    assert set(os.listdir("/dev/shm")) <= before


def test_closing_ends_the_workers():
    env = vector("processes", "CartPole-v1")
    assert isinstance(env.env, SubprocVectorEnv)
    processes = [worker.process for worker in env.env._workers]
    env.close()
    assert [process.poll() for process in processes] == [0] * len(processes)
