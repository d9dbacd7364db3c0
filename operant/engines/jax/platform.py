"""What JAX computes on: the platform and its devices, the compiler's options, threads, and where programs are kept."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np

from operant.engines.jax.devices import on_gpu
from operant.engines.jax.preallocation import take_memory_as_needed
from operant.envs.functional.find import steps_on_host
from operant.errors import UsageError
from operant.run.processes.distributed_config import distributed_config
from operant.spec.schema import Spec
from operant.store.cache import cache_folder

# Without it the CPU compiler fuses a matrix product with what follows where no gradient is taken, and only there:
# then the pass over a rollout and the first gradient step round differently, and PPO's first ratio is not 1.
SAME_ARITHMETIC: dict[str, Any] = {"xla_cpu_experimental_ynn_fusion_type": ""}
CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def compiler_options() -> dict[str, Any]:
    """Options for the CPU compiler; none where its version does not know them.

    Its optimization level stays as it is: at level 1 it compiles a sixth faster, and HackMatrix's PPO in one minibatch
    then crashes the process.
    """
    if jax.default_backend() != "cpu":
        return {}
    try:
        jax.jit(lambda x: x, compiler_options=SAME_ARITHMETIC)(np.float32(0))
    except Exception:
        return {}
    return SAME_ARITHMETIC


def prepare_jax(spec: Spec) -> str:
    """Choose the platform and keep compiled programs for the next start; returns the kind of device.

    Sessions whose environments step on the host are processes beside each other, and may share one GPU: each takes the
    memory that it needs. Of one program for all sessions JAX takes most of the GPU at once, as it does by itself.
    """
    if steps_on_host(spec.env):
        take_memory_as_needed()
    choose_platform(spec)
    if not os.environ.get(CACHE_VARIABLE):
        jax.config.update("jax_compilation_cache_dir", str(cache_folder("jax")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
    check_devices(spec)
    shared = f" in {jax.process_count()} processes" if jax.process_count() > 1 else ""
    return f"{spec.meta.devices} x {jax.devices()[0].device_kind}{shared}"


def choose_platform(spec: Spec) -> None:
    """Let JAX look for the devices that the spec asks for, where it has not looked yet.

    On a CPU small programs run in the thread that calls them: the host waits for them anyway.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if spec.meta.device == "cpu":
        jax.config.update("jax_platforms", "cpu")


def limit_threads(threads: int) -> None:
    """Let XLA compute with so many threads on a CPU, where it has not begun to yet.

    The environments on the host, and other sessions, need the other cores.
    """
    os.environ["NPROC"] = str(threads)


def gpus_of(spec: Spec) -> int:
    """How many GPUs a program of this spec computes on here."""
    return spec.meta.devices if on_gpu() else 0


def check_devices(spec: Spec) -> None:
    """`UsageError` if the devices that the spec asks for are not there; each process has its share of them."""
    joined = distributed_config()
    processes = 1 if joined is None else joined.num_processes
    count = len(jax.local_devices())
    if spec.meta.device == "cuda" and not on_gpu():
        raise UsageError("meta.device: cuda is asked for, but JAX sees no CUDA device", remedy="-s meta.device=cpu")
    each, uneven = divmod(spec.meta.devices, processes)
    if uneven:
        raise UsageError(
            f"meta.devices: {spec.meta.devices} devices cannot have equal shares in {processes} processes",
            remedy=f"-s meta.devices={(each + 1) * processes}, or start another number of processes",
        )
    if each > count:
        asked = f"{each} are asked for" if processes == 1 else f"{each} are asked for in each of {processes} processes"
        forced = f"XLA_FLAGS=--xla_force_host_platform_device_count={each} pretends more on the CPU"
        raise UsageError(
            f"meta.devices: {asked}, but JAX sees {count} of kind {jax.default_backend()}",
            remedy=f"-s meta.devices={count * processes}; {forced}",
        )
