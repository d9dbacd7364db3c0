"""Sessions that each take several nodes of a Ray cluster: a placement group, and a process or more in each bundle."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from operant.errors import EXIT_STOPPED
from operant.launch.jobs.ray_tasks import run_task
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.processes.leader import free_port

NOTICE_SECONDS = 120.0


def run_on_nodes(plan: Mapping[str, Any]) -> int:
    """Run the tasks of a plan, each on nodes of its own, side by side; returns the worst exit code."""
    deadline = time.monotonic() + plan["seconds"]
    with ThreadPoolExecutor(len(plan["tasks"])) as pool:
        return max(pool.map(lambda number: _run(plan, number, deadline), range(len(plan["tasks"]))))


def _run(plan: Mapping[str, Any], number: int, deadline: float) -> int:
    """One task, started again as a whole whenever one of its nodes is lost."""
    while True:
        code = _run_once(plan, number, deadline)
        if code is not None:
            return code


def _run_once(plan: Mapping[str, Any], number: int, deadline: float) -> int | None:
    """The worst exit code of the processes; None where a node was lost."""
    import ray  # pyright: ignore[reportMissingImports]
    from ray.exceptions import RayError, TaskCancelledError  # pyright: ignore[reportMissingImports]
    from ray.util.placement_group import (  # pyright: ignore[reportMissingImports]
        placement_group,
        remove_placement_group,
    )

    each = plan["processes_per_node"]
    bundle = {name: amount * each for name, amount in _resources(plan).items()}
    processes: list[Any] = []
    group = placement_group([bundle] * plan["nodes"], strategy="STRICT_SPREAD")
    try:
        if not group.wait(max(1.0, deadline - time.monotonic())):
            return EXIT_STOPPED
        processes = _start(plan, number, group)
        _, late = ray.wait(processes, num_returns=len(processes), timeout=max(1.0, deadline - time.monotonic()))
        for process in late:
            ray.cancel(process)
        return max(ray.get(processes))
    except TaskCancelledError:
        return EXIT_STOPPED
    except RayError:
        # The others end when they notice; the run must be free before it is taken up again.
        if processes:
            ray.wait(processes, num_returns=len(processes), timeout=NOTICE_SECONDS)
        return None
    finally:
        remove_placement_group(group)


def _start(plan: Mapping[str, Any], number: int, group: Any) -> list[Any]:
    """All processes of a task; the first is in the first bundle, on whose node it listens."""
    import ray  # pyright: ignore[reportMissingImports]
    from ray.util.scheduling_strategies import (  # pyright: ignore[reportMissingImports]
        PlacementGroupSchedulingStrategy as InGroup,
    )

    asking = ray.remote(_listening_place).options(num_cpus=0, scheduling_strategy=InGroup(group, 0))
    host, port = ray.get(asking.remote())
    count, each = plan["nodes"] * plan["processes_per_node"], plan["processes_per_node"]
    wanted, started = _resources(plan), []
    for process in range(count):
        variables: dict[str, str] = {}
        DistributedConfig(host, port, count, process).export(variables)
        options = {
            "num_cpus": wanted["CPU"],
            "num_gpus": wanted.get("GPU", 0),
            "memory": wanted.get("memory"),
            "max_retries": 0,
            "scheduling_strategy": InGroup(group, process // each),
        }
        log = f"{plan['logs']}/ray_{number}{f'_{process}' if process else ''}.log"
        remote: Any = ray.remote(run_task).options(**options)
        started.append(remote.remote(plan["tasks"][number], plan["folder"], log, plan["cpus"], variables))
    return started


def _resources(plan: Mapping[str, Any]) -> dict[str, float]:
    """Of one process, as a bundle names them."""
    memory = None if plan["memory_gb"] is None else int(plan["memory_gb"] * 2**30)
    asked = {"CPU": plan["cpus"], "GPU": plan["gpus"], "memory": memory}
    return {name: amount for name, amount in asked.items() if amount}


def _listening_place() -> tuple[str, int]:
    """The address of the node that this runs on, and a port that is free there."""
    import ray  # pyright: ignore[reportMissingImports]

    return ray.util.get_node_ip_address(), free_port()
