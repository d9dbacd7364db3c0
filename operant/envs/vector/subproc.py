"""Environments in worker processes, where a step costs more than a round trip to another process.

Each worker steps a contiguous slice of the environments and this process plays the first slice itself.
Observations, rewards, flags, masks and actions lie in memory that all of them share; a byte on a socket
says "step" and another "done". Two things make an end of any kind clean:

* the shared memory is a file without a name, which the system frees with its last user;
* a worker whose socket closes, because the parent ended or was killed, ends too.

The results are those of the same environments in one process, bit for bit.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from operant.envs.vector.base import Outcome, VectorEnv
from operant.envs.vector.fp_mode import arithmetic_mode
from operant.envs.vector.local import make_local
from operant.errors import RunError
from operant.run.followers import search_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from operant.spec.settings.sections import EnvSpec

STEP, RESET, PREFETCH, DONE, FAILED = b"s", b"r", b"p", b"d", b"f"
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class Layout:
    """What the shared memory holds for `num` environments."""

    num: int
    obs_shape: Sequence[int]
    obs_dtype: str
    action_shape: Sequence[int]
    action_dtype: str
    actions: int

    @classmethod
    def of(cls, env: VectorEnv, num: int) -> Layout:
        """The layout for `num` environments like these."""
        space = env.action_space
        discrete = isinstance(space, Discrete)
        return cls(
            num=num,
            obs_shape=env.obs_shape,
            obs_dtype=env.obs_dtype.str,
            action_shape=space.shape if isinstance(space, Box) else (),
            action_dtype=np.dtype(np.int64 if discrete else space.dtype).str,
            actions=int(space.n) if isinstance(space, Discrete) else 0,
        )

    def size(self) -> int:
        """Bytes in all."""
        return sum(_aligned(shape, dtype) for shape, dtype in self.fields().values())

    def fields(self) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        """Shape and type of every array, in the order in which they lie."""
        flag = np.dtype(bool)
        return {
            "obs": ((self.num, *self.obs_shape), np.dtype(self.obs_dtype)),
            "action": ((self.num, *self.action_shape), np.dtype(self.action_dtype)),
            "reward": ((self.num,), np.dtype(np.float64)),
            "seed": ((self.num,), np.dtype(np.int64)),
            "terminated": ((self.num,), flag),
            "truncated": ((self.num,), flag),
            "over": ((self.num,), flag),
            "playing": ((self.num,), flag),
            "reset": ((self.num,), flag),
            "has_mask": ((self.num,), flag),
            "mask": ((self.num, self.actions), flag),
        }


@dataclass(frozen=True)
class Shared:
    """The arrays in shared memory, by name."""

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    seed: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    over: np.ndarray
    playing: np.ndarray
    reset: np.ndarray
    has_mask: np.ndarray
    mask: np.ndarray

    @classmethod
    def within(cls, layout: Layout, memory: mmap.mmap | memoryview) -> Shared:
        """The arrays in a piece of memory of at least the layout's size."""
        offsets, end = {}, 0
        for name, (shape, dtype) in layout.fields().items():
            offsets[name] = end
            end += _aligned(shape, dtype)
        return cls(
            **{
                name: np.frombuffer(memory, dtype, int(np.prod(shape)), offsets[name]).reshape(shape)
                for name, (shape, dtype) in layout.fields().items()
            }
        )

    def take(self, out: Outcome) -> None:
        """Keep what a step did."""
        self.obs[:], self.reward[:] = out.obs, out.reward
        self.terminated[:], self.truncated[:], self.over[:] = out.terminated, out.truncated, out.over
        self.has_mask[:] = out.mask is not None
        if out.mask is not None:
            self.mask[:] = out.mask

    @staticmethod
    def outcome(parts: list[Shared]) -> Outcome:
        """What a step did to all the environments of `parts`, in arrays of its own."""
        has_mask = np.concatenate([part.has_mask for part in parts])
        mask = np.concatenate([part.mask for part in parts]) if has_mask.any() else None
        return Outcome(
            np.concatenate([part.obs for part in parts]),
            np.concatenate([part.reward for part in parts]),
            np.concatenate([part.terminated for part in parts]),
            np.concatenate([part.truncated for part in parts]),
            np.concatenate([part.over for part in parts]),
            None if mask is None else np.where(has_mask[:, None], mask, True),
        )

    def slice(self, first: int, end: int) -> Shared:
        """The same of the environments from `first` to before `end`."""
        return Shared(**{name: getattr(self, name)[first:end] for name in self.__dataclass_fields__})


class Slice:
    """Some of the environments, played in the process that holds it, with what they do written to shared memory."""

    def __init__(self, env: VectorEnv, shared: Shared) -> None:
        self.env = env
        self._shared = shared

    def step(self) -> None:
        """Play the shared actions where the environments are to play."""
        self.send()
        self.receive()

    def send(self) -> None:
        """Begin a step that `receive` ends."""
        shared = self._shared
        # Copied, because an environment may keep the action that it was given.
        self.env.send(list(shared.action.copy()), None if shared.playing.all() else shared.playing)

    def receive(self) -> None:
        """Write what the step did that `send` began."""
        self._shared.take(self.env.receive())

    def reset(self) -> None:
        """Begin a new episode where one is asked for."""
        shared = self._shared
        seeds = {i: int(shared.seed[i]) for i in np.flatnonzero(shared.reset).tolist()}
        for i, (obs, mask) in self.env.reset_many(seeds).items():
            shared.obs[i], shared.has_mask[i] = obs, mask is not None
            if mask is not None:
                shared.mask[i] = mask

    def prefetch(self) -> None:
        """Prepare the next reset where one is announced."""
        for i in np.flatnonzero(self._shared.reset).tolist():
            self.env.prefetch_reset(i, int(self._shared.seed[i]))


@dataclass(frozen=True)
class Worker:
    """A process that plays the environments from `first` to before `end`."""

    process: subprocess.Popen[bytes]
    line: socket.socket
    first: int
    end: int


class SubprocVectorEnv(VectorEnv):
    """Environments shared out among `processes` processes, of which this is one."""

    def __init__(self, spec: EnvSpec, num: int, processes: int) -> None:
        bounds = np.linspace(0, num, min(processes, num) + 1).astype(int).tolist()
        own = make_local(spec, bounds[1])
        self.num = num
        self.processes = len(bounds) - 1
        self.action_space = own.action_space
        self.obs_shape, self.obs_dtype, self.stack = own.obs_shape, own.obs_dtype, own.stack
        self.prefetches_resets = own.prefetches_resets
        self._name = spec.name
        layout = Layout.of(own, num)
        with _nameless_file() as memory:
            os.ftruncate(memory.fileno(), layout.size())
            self._shared = Shared.within(layout, mmap.mmap(memory.fileno(), layout.size()))
            self._workers = [_start(spec, layout, memory.fileno(), first, end) for first, end in pairwise(bounds[1:])]
        self._end = weakref.finalize(self, _stop, self._workers)
        self._own = Slice(own, self._shared.slice(0, bounds[1]))
        for worker in self._workers:
            self._await(worker)

    def reset(self, index: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        return self.reset_many({index: seed})[index]

    def reset_many(self, seeds: Mapping[int, int]) -> dict[int, tuple[np.ndarray, np.ndarray | None]]:
        shared = self._shared
        self._for_seeds(seeds, RESET, self._own.reset)
        return {i: (shared.obs[i].copy(), shared.mask[i].copy() if shared.has_mask[i] else None) for i in seeds}

    def prefetch_reset(self, index: int, seed: int) -> None:
        self._for_seeds({index: seed}, PREFETCH, self._own.prefetch)

    def _for_seeds(self, seeds: Mapping[int, int], word: bytes, play_own: Callable[[], None]) -> None:
        """Let the processes of these environments do what `word` says, with the seeds in shared memory."""
        shared, indices = self._shared, list(seeds)
        shared.reset[indices], shared.seed[indices] = True, list(seeds.values())
        asked = [worker for worker in self._workers if shared.reset[worker.first : worker.end].any()]
        for worker in asked:
            self._tell(worker, word)
        self._play_own(play_own)
        for worker in asked:
            self._await(worker)
        shared.reset[indices] = False

    def step(self, actions: list[Any], playing: np.ndarray | None = None) -> Outcome:
        self.send(actions, playing)
        return self.receive()

    def send(self, actions: list[Any], playing: np.ndarray | None = None) -> None:
        shared = self._shared
        shared.action[:] = actions
        shared.playing[:] = True if playing is None else playing
        for worker in self._workers:
            self._tell(worker, STEP)
        self._play_own(self._own.send)

    def receive(self) -> Outcome:
        self._play_own(self._own.receive)
        for worker in self._workers:
            self._await(worker)
        return Shared.outcome([self._shared])

    def close(self) -> None:
        self._end()
        self._own.env.close()

    def _play_own(self, play: Callable[[], None]) -> None:
        try:
            play()
        except Exception as problem:
            raise self._failed(self._own.env.at, f"{type(problem).__name__}: {problem}") from problem

    def _tell(self, worker: Worker, word: bytes) -> None:
        try:
            worker.line.sendall(word)
        except OSError:
            raise self._died(worker) from None

    def _await(self, worker: Worker) -> None:
        """Wait until a worker is done; raise what went wrong there."""
        try:
            word = worker.line.recv(1)
        except ConnectionError:
            word = b""
        if word == DONE:
            return
        if word != FAILED:
            raise self._died(worker)
        with worker.line.makefile("r", encoding="utf-8") as lines:
            failure = json.loads(lines.readline())
        raise self._failed(worker.first + failure["index"], failure["cause"]) from WorkerError(failure["trace"])

    def _failed(self, index: int, cause: str) -> RunError:
        return RunError(
            f"{self._name} failed in environment {index} of {self.num}: {cause}",
            remedy="mend the environment, then `operant resume` goes on from the last checkpoint",
        )

    def _died(self, worker: Worker) -> RunError:
        try:
            code = worker.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        how = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
        return RunError(
            f"{self._name}: the process of environments {worker.first} to {worker.end - 1} of {self.num} died ({how})",
            remedy="`operant resume` goes on from the last checkpoint; SIGKILL often means too little memory: "
            "fewer env.num_envs, or -s env.vectorization=serial",
        )


class WorkerError(Exception):
    """What was raised in a worker, as the text of its traceback."""


def _nameless_file() -> Any:
    """A file in memory where the system has such, else a temporary one; neither can outlive its users."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("operant-envs"), "r+b")
    return tempfile.TemporaryFile()


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Bytes of an array, rounded up to whole cache lines."""
    return -(-int(np.prod(shape)) * dtype.itemsize // 64) * 64


def _start(spec: EnvSpec, layout: Layout, memory: int, first: int, end: int) -> Worker:
    """Start a worker; it says DONE when its environments stand."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "operant.envs.vector.worker", str(theirs.fileno()), str(memory)],
            pass_fds=(theirs.fileno(), memory),
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": search_path()},
        )
    task = {
        "spec": spec.model_dump(mode="json"),
        "layout": vars(layout),
        "first": first,
        "end": end,
        "mode": arithmetic_mode().hex(),
        "parent": os.getpid(),
    }
    ours.sendall(json.dumps(task).encode() + b"\n")
    return Worker(process, ours, first, end)


def _stop(workers: list[Worker]) -> None:
    """Close every line, on which the workers end; one that does not is killed."""
    for worker in workers:
        worker.line.close()
    for worker in workers:
        try:
            worker.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
