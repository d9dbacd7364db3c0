"""A Ray cluster of two nodes on this machine, of which the second dies while a search and a language run use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from operant.hpo.jobs import Jobs
from operant.hpo.storage import database_url
from operant.run.metrics import read_rows
from operant.run.records import Records, difference
from operant.run.run import Run
from tests.contract.searches import assert_same_curves, finish, outcome, start, write_spec
from tests.e2e.test_ray import SPEC, events, name_of, session_of
from tests.processes import lives, wait_until

# Not imported to find out: that takes seconds of every collection.
present = pytest.mark.skipif(find_spec("ray") is None, reason="needs the package ray")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), present]


@contextmanager
def cluster_of(cpus: int) -> Iterator[Any]:
    """A head with so many CPUs; the test adds the second node."""
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    found = Cluster(initialize_head=True, head_node_args=small(cpus))
    try:
        yield found
    finally:
        found.shutdown()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node starts slowly on a busy machine."""
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")


def small(cpus: int) -> dict[str, Any]:
    """A node of so many CPUs."""
    return {"num_cpus": cpus, "object_store_memory": 100_000_000, "include_dashboard": False}


def raylet_of(node: Any) -> int:
    return node.all_processes["raylet"][0].process.pid


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, theirs included."""
    tasks = Path(f"/proc/{pid}/task")
    children = [int(child) for task in (tasks.iterdir() if lives(pid) else ()) for child in _children(task)]
    return [*children, *(each for child in children for each in descendants(child))]


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except OSError:
        return []


def lose(node: Any) -> None:
    """The node and all that runs on it ends at once, as when a machine is switched off."""
    raylet = raylet_of(node)
    for pid in (*descendants(raylet), raylet):
        os.kill(pid, signal.SIGKILL)


def test_a_search_survives_its_second_node(tmp_path: Path) -> None:
    with cluster_of(1) as cluster:
        search_and_lose(cluster, tmp_path)


def search_and_lose(cluster: Any, tmp_path: Path) -> None:
    """A search by two workers, one on each node."""
    spec = write_spec(tmp_path, trials=6, grace=2048, frames=8192)
    words = ["launch", str(spec), "--on", "ray", "--search", "2", "--dry-run", "--out", "lost"]
    subprocess.run([sys.executable, "-m", "operant", *words], cwd=tmp_path, check=True, capture_output=True)
    second = cluster.add_node(**small(1))
    driver = subprocess.Popen(
        [sys.executable, "-m", "operant.launch.jobs.ray_jobs", str(tmp_path / "lost" / "launch" / "ray.json")],
        cwd=tmp_path,
        env={**os.environ, "RAY_ADDRESS": cluster.address},
    )
    jobs = Jobs(database_url(tmp_path / "lost", None), json.loads((tmp_path / "lost/search.json").read_text())["study"])

    def there() -> set[int]:
        """Who on the second node has a job now."""
        working = {int(row.worker.split("/")[1]) for row in jobs.all() if not row.finished}
        return working & set(descendants(raylet_of(second)))

    assert wait_until(lambda: bool(there()) or driver.poll() is not None, 300)
    assert there()
    lose(second)
    assert driver.wait(600) == 0
    finish(start(spec, "--out", tmp_path / "whole", "--workers", "2", "--plain"))
    assert outcome(tmp_path / "lost") == outcome(tmp_path / "whole")
    assert_same_curves(tmp_path / "lost", tmp_path / "whole")


def test_a_session_on_two_nodes_survives_one_of_them(tmp_path: Path) -> None:
    with cluster_of(1) as cluster:
        share_and_lose(cluster, tmp_path)


def share_and_lose(cluster: Any, tmp_path: Path) -> None:
    """A session of two processes, one on each node; the second node is lost and another one comes."""
    second = cluster.add_node(**small(1))
    training = ["ppo_cartpole", "--sessions", "1", "-s", "meta.processes=2", "-s", "env.max_frame=20480"]
    training += ["-s", "meta.log_frequency=2000", "-s", "meta.save_frequency=4000"]
    words = ["launch", *training, "-s", "meta.launch.nodes=2", "--on", "ray", "--dry-run", "--out", "lost"]
    operant = [sys.executable, "-m", "operant"]
    subprocess.run([*operant, *words], cwd=tmp_path, check=True, capture_output=True)
    driver = subprocess.Popen(
        [sys.executable, "-m", "operant.launch.jobs.ray_jobs", str(tmp_path / "lost" / "launch" / "ray.json")],
        cwd=tmp_path,
        env={**os.environ, "RAY_ADDRESS": cluster.address},
    )
    session = tmp_path / "lost" / "trial_000" / "session_0"
    assert wait_until(lambda: (session / "metrics.jsonl").exists() or driver.poll() is not None, 300)
    lose(second)
    cluster.add_node(**small(1))
    assert driver.wait(600) == 0
    subprocess.run([*operant, "train", *training, "--plain", "--out", "whole"], cwd=tmp_path, check=True)
    whole = tmp_path / "whole" / "trial_000" / "session_0"
    assert difference(Records.of(Run.open(session)), Records.of(Run.open(whole))) is None
    assert len(list((session / "provenance").glob("attempt_*.json"))) == 2


def test_actors_of_a_lost_node_are_replaced(tmp_path: Path) -> None:
    with cluster_of(0) as cluster:
        train_and_lose(cluster, tmp_path)


def train_and_lose(cluster: Any, tmp_path: Path) -> None:
    """A language run whose trainer is on the head, and whose actors are all on the second node."""
    second = cluster.add_node(**small(2))
    (tmp_path / "small.yaml").write_text(SPEC)
    settings = ["meta.cluster=ray", f"meta.ray.address={cluster.address}", "agent.algorithm.staleness=1"]
    flags = [flag for setting in settings for flag in ("-s", setting)]
    command = [sys.executable, "-m", "operant", "train", "small.yaml", "--root", "runs", *flags]
    process = subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    session = session_of(tmp_path)

    def verifiers() -> set[int]:
        """Those that were placed, once some rounds are done."""
        rows = events(session)
        if sum(row["name"] == "train" for row in rows) < 2:
            return set()
        placed = [row for row in rows if row["name"] == "placed" and name_of(session, row).startswith("verifier")]
        return {row["args"]["pid"] for row in placed}

    assert wait_until(lambda: bool(verifiers()) or process.poll() is not None, 400)
    assert verifiers() & set(descendants(raylet_of(second)))
    lose(second)
    cluster.add_node(**small(2))
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    told = [row["message"] for row in read_rows(session / "events.jsonl") if row["kind"] == "replaced"]
    assert any("verifier" in line for line in told)
    fates = {
        row["id"]: row["args"]["step"] for row in events(session) if row.get("cat") == "prompt" and row["ph"] == "e"
    }
    begun = {row["id"] for row in events(session) if row.get("cat") == "prompt" and row["ph"] == "b"}
    assert begun == set(fates), "every prompt is accounted for"
    (last,) = [row for row in read_rows(session / "metrics.jsonl") if "final/score" in row]
    assert last["frames"] == 1024
