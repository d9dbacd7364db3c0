"""One session in several processes: all of them generate and train; the leader judges and records.

Process 0 is the session. It starts the others, tells them every call of its learner and its generator, and they make
the same call on their slices of the weights and their share of the work, until it says that there is no more to do.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed import Store, TCPStore  # pyright: ignore[reportPrivateImportUsage]

from operant.engines.language.ranks import Dismissed, Ranks
from operant.envs.workers import search_path
from operant.errors import RunError
from operant.run.run import Run
from operant.spec.schema import Spec

HOST = "127.0.0.1"
PATIENCE = timedelta(days=30)  # the leader may generate for as long as it takes
MOMENT_SECONDS = 5.0
Follower = subprocess.Popen[bytes]


@contextmanager
def led(run: Run, spec: Spec) -> Iterator[None]:
    """Within this context the session has as many processes as its spec asks for; this one leads.

    One that dies ends the session with an error that names it.
    """
    if spec.meta.processes == 1:
        yield
        return
    store = TCPStore(HOST, 0, spec.meta.processes, is_master=True, wait_for_workers=False, timeout=PATIENCE)
    followers = [_start(run, store.port, rank) for rank in range(1, spec.meta.processes)]
    try:
        _join(spec, store, 0)
        yield
        Ranks().announce(None)
    except RuntimeError as broken:
        cause = _find_dead(followers)
        if cause is None:
            raise
        raise cause from broken
    finally:
        for follower in followers:
            follower.kill()
            follower.wait()
        if dist.is_initialized():
            dist.destroy_process_group()


def _join(spec: Spec, store: Store, rank: int) -> None:
    """Become one of the session's processes; words go by gloo, weights on GPUs by NCCL."""
    size = spec.meta.processes
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    on_gpus = spec.meta.device != "cpu" and torch.cuda.is_available()
    if on_gpus:
        torch.cuda.set_device(rank)
    backend = "cpu:gloo,cuda:nccl" if on_gpus else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)


def _start(run: Run, port: int, rank: int) -> Follower:
    """A follower; it ends when its standard input does, and says on its standard output why it failed."""
    code = "from operant.engines.language.parallel import follow; follow()"
    return subprocess.Popen(
        [sys.executable, "-c", code, str(run.path), str(port), str(rank)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": search_path()},
    )


def _find_dead(followers: list[Follower]) -> RunError | None:
    """What the first follower that is gone died of; None if all live on for a moment."""
    deadline = time.monotonic() + MOMENT_SECONDS
    while time.monotonic() < deadline:
        for rank, follower in enumerate(followers, start=1):
            if (code := follower.poll()) is not None:
                return _obituary(follower, code, rank, len(followers))
        time.sleep(0.05)
    return None


def _obituary(follower: Follower, code: int, rank: int, last: int) -> RunError:
    assert follower.stdout is not None, "followers are started with a pipe"
    told = follower.stdout.read().decode(errors="replace")
    how = told or (signal.Signals(-code).name if code < 0 else f"exit code {code}")
    return RunError(
        f"process {rank} of 0 to {last}, with its share of the weights, died: {how}",
        remedy="`operant resume` goes on from the last checkpoint",
    )


def follow() -> None:
    """The life of a follower."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_leader, daemon=True).start()
    last_words = os.dup(1)
    os.dup2(2, 1)  # what a library prints belongs in the log
    try:
        _follow(Run.open(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]))
    except Dismissed:
        os._exit(0)
    except Exception as problem:
        traceback.print_exc()
        os.write(last_words, f"{type(problem).__name__}: {problem}".encode())
        os._exit(1)


def _follow(run: Run, port: int, rank: int) -> None:
    from operant.engines.language.build import build_generator, build_learner, build_policy, model_of, prepare_torch
    from operant.engines.language.learner import Learner
    from operant.engines.language.sharing import SharedGenerator, shared
    from operant.run.seeding import Seeds

    spec = Spec.model_validate(run.spec)
    prepare_torch(spec, run.threads)
    _join(spec, TCPStore(HOST, port, spec.meta.processes, is_master=False, timeout=PATIENCE), rank)
    seeds, model, ranks = Seeds(run.seed), model_of(spec), Ranks()
    policy = build_policy(model, seeds, spec.meta.device)
    members = {
        Learner.__name__: build_learner(spec, seeds, policy),
        SharedGenerator.__name__: shared(build_generator(policy, model), ranks),
    }
    while True:
        who, what, arguments = ranks.hear()
        getattr(members[who], what)(*arguments)


def _end_with_leader() -> None:
    """Standard input closes when the leader is gone, however it went."""
    sys.stdin.buffer.read()
    os._exit(1)
