"""How `operant runs`, `operant show` and `operant app` grow with the number of runs on disk.

    python -m benchmarks.growth_runs          (writes results/growth_runs.json; Chromium for the page, if there is one)

Of `runs` and `show` the CPU-seconds of whole processes are measured too, for the machine may be busy with other work
(`load`). Of the app it is the clock: from the start of the process until it answers, and from opening the page until
the list and the first chart are there. The least of a few tries, on a warm file system.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.many_runs import Size, write_tree

COUNTS = (1, 50, 500, 5000)
SIZE = Size(seeds=2, rows=100)
REPEATS = 3
OUT = Path(__file__).with_name("results") / "growth_runs.json"


def measure(root: Path, name: str) -> dict[str, float]:
    """Every measure of one folder, the least of a few tries."""
    show = [sys.executable, "-m", "operant", "show", name, "--root", str(root)]
    found = _command("runs", [sys.executable, "-m", "operant", "runs", "--root", str(root)]) | _command("show", show)
    tries = [_app(root) for _ in range(REPEATS)]
    return found | {key: min(each[key] for each in tries) for key in tries[0]}


def _app(root: Path) -> dict[str, float]:
    begun = time.monotonic()
    words = [sys.executable, "-m", "operant", "app", str(root), "--port", "0", "--no-browser", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        said = b""
        while not said.endswith(b"}\n"):
            said += process.stdout.readline()
        url = json.loads(said)["url"]
        urlopen(f"{url}/health").read()
        return {"app_serving": time.monotonic() - begun, **_page(url)}
    finally:
        process.terminate()
        process.wait()


def _page(url: str) -> dict[str, float]:
    browser = shutil.which("chromium")
    if browser is None:
        return {}
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = opened.new_page(viewport={"width": 1400, "height": 900})
        begun = time.monotonic()
        page.goto(url)
        page.locator(".run").first.wait_for()
        listed = time.monotonic() - begun
        page.locator(".u-over").first.wait_for()
        drawn = time.monotonic() - begun
        opened.close()
    return {"app_first_rows": listed, "app_first_chart": drawn}


def _command(name: str, words: list[str]) -> dict[str, float]:
    """The seconds and CPU-seconds of a command."""
    clock, cpu = [], []
    for _ in range(REPEATS):
        begun, used = time.monotonic(), _children()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        clock.append(time.monotonic() - begun)
        cpu.append(_children() - used)
    return {name: min(clock), f"{name}_cpu": min(cpu)}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure how commands grow with the number of runs.")
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    table: dict[str, Any] = {}
    for count in given.counts:
        with tempfile.TemporaryDirectory() as folder:
            root = write_tree(Path(folder), count, SIZE)
            seconds = measure(root, "ppo_cartpole/20261001-000000")
            load = os.getloadavg()[0]
        table[str(count)] = {**{key: round(value, 2) for key, value in seconds.items()}, "load": round(load, 1)}
        print(count, table[str(count)], flush=True)
    about = {"seeds": SIZE.seeds, "rows_per_seed": SIZE.rows, "cores": os.cpu_count(), "tries": REPEATS}
    given.out.write_text(json.dumps({"about": about, "seconds": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
