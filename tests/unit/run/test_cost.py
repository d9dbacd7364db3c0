"""The account of a session: counted while it trains, kept through a kill, shared by sessions of one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from operant.run import cost, usage
from operant.run.cost import CostAccount, read_attempts
from operant.run.progress import Progress

SPIN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"

TICKS = 0.05
"""The kernel counts CPU time of processes in hundredths of a second, so sums are off by a few of them."""


def account(folder: Path, attempt: int = 1, start: Progress | None = None, price: float | None = None) -> CostAccount:
    folder.mkdir(exist_ok=True)
    return CostAccount(folder, attempt, start or Progress(), price, lambda: True)


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_an_attempt_from_beginning_to_end(tmp_path: Path) -> None:
    opened = account(tmp_path, 1, Progress(frames=10, tokens=3, seconds=1.5), price=0.5)
    assert [each["closed"] for each in read_attempts(tmp_path)] == [False]
    spin(0.3)
    opened.at = Progress(frames=40, tokens=9, seconds=2.0)
    opened.use_gpus(0)
    opened.close()
    [entry] = read_attempts(tmp_path)
    assert entry["closed"]
    assert 0.3 - TICKS <= entry["cpu_seconds"] < 1.0
    assert entry["wall_seconds"] >= 0.3
    assert (entry["frames"], entry["tokens"], entry["seconds"]) == ([10, 40], [3, 9], [1.5, 2.0])
    assert (entry["gpus"], entry["price_per_hour"]) == ([], 0.5)


def test_what_cannot_be_read_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "RAPL", tmp_path / "no_such_folder")
    account(tmp_path).close()
    [entry] = read_attempts(tmp_path)
    assert not {"cpu_joules", "gpu_joules", "gpus", "price_per_hour"} & set(entry)


def test_energy_of_the_processor_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rapl = tmp_path / "powercap"
    for zone, used in (("intel-rapl:0", 1_000_000), ("intel-rapl:1", 2_000_000), ("intel-rapl:0:0", 9_000_000)):
        (rapl / zone).mkdir(parents=True)
        (rapl / zone / "energy_uj").write_text(str(used))
    monkeypatch.setattr(usage, "RAPL", rapl)
    opened = account(tmp_path / "session")
    (rapl / "intel-rapl:0" / "energy_uj").write_text("8500000")
    opened.close()
    assert read_attempts(tmp_path / "session")[0]["cpu_joules"] == 7.5


def two_at_once(folder: Path) -> tuple[list[float], float]:
    """CPU-seconds of two sessions of this process, and those of the process meanwhile."""
    before = usage.cpu_seconds()
    both = [account(folder / name) for name in ("a", "b")]
    spin(0.4)
    for each in both:
        each.close()
    return [read_attempts(folder / name)[0]["cpu_seconds"] for name in ("a", "b")], usage.cpu_seconds() - before


def test_sessions_of_one_process_share_what_it_uses(tmp_path: Path) -> None:
    # In a process of its own: threads that earlier tests left behind would work on for one of the two.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        spent, used = pool.submit(two_at_once, tmp_path).result()
    assert spent[0] == pytest.approx(spent[1], abs=0.1)
    assert 0.4 - TICKS <= sum(spent) <= used + TICKS


def test_children_count_while_they_live_and_after(tmp_path: Path) -> None:
    opened = account(tmp_path)
    with subprocess.Popen([sys.executable, "-c", SPIN.format(seconds=0.5) + "time.sleep(60)"]) as child:
        deadline = time.monotonic() + 20
        while read_attempts(tmp_path)[0]["cpu_seconds"] < 0.5 and time.monotonic() < deadline:
            time.sleep(0.1)
            opened.count()
        child.kill()
    opened.close()
    assert read_attempts(tmp_path)[0]["cpu_seconds"] >= 0.5 - TICKS


def test_a_later_attempt_keeps_the_earlier_ones(tmp_path: Path) -> None:
    account(tmp_path, 1).close()
    account(tmp_path, 2, Progress(frames=5)).close()
    assert [each["attempt"] for each in read_attempts(tmp_path)] == [1, 2]


def test_a_directory_that_is_not_ours_any_more_is_left_alone(tmp_path: Path) -> None:
    mine = [True]
    opened = CostAccount(tmp_path, 1, Progress(), None, lambda: mine[0])
    text = (tmp_path / "cost.json").read_text()
    mine[0] = False
    opened.close()
    assert (tmp_path / "cost.json").read_text() == text


def test_a_kill_leaves_the_account_of_moments_before(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom operant.run import cost\n"
        "from operant.run.progress import Progress\n"
        "cost.COUNT_SECONDS = 0.05\naccount = cost.CostAccount(Path(sys.argv[1]), 1, Progress(), None, lambda: True)\n"
        "print('open', flush=True)\ntime.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    begun = time.time()
    time.sleep(0.8)
    os.kill(child.pid, signal.SIGKILL)
    alive = time.time() - begun
    child.wait()
    child.stdout.close()
    [entry] = read_attempts(tmp_path)
    assert not entry["closed"]
    assert alive - 0.5 <= entry["wall_seconds"] <= alive + 0.5


def test_a_file_that_is_damaged_is_no_account(tmp_path: Path) -> None:
    for text in ("", "torn {", "[]", json.dumps({"attempts": [1]})):
        (tmp_path / "cost.json").write_text(text)
        assert read_attempts(tmp_path) == []
    account(tmp_path, 2).close()
    assert [each["attempt"] for each in read_attempts(tmp_path)] == [2]


def test_the_thread_ends_with_the_last_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(cost, "COUNT_SECONDS", 0.02)
    for _ in range(3):
        account(tmp_path).close()
    time.sleep(0.2)
    assert not [thread for thread in threading.enumerate() if thread.name == "run-cost"]
