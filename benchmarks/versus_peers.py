"""Operant's engines beside the libraries that people would pick instead, at matched settings, alternating in one go.

    scripts/uv run --group bench python -m benchmarks.versus_peers
    scripts/uv run --group bench python -m benchmarks.versus_peers --cells sac-pendulum --seeds 2
    python -m benchmarks.versus_peers --python sb3=/envs/sbx/bin/python sbx=/envs/sbx/bin/python \\
        cleanrl=/envs/cleanrl/bin/python --cleanrl ../cleanrl --purejaxrl ../purejaxrl

Peers: Stable-Baselines3, SBX, Tianshou, CleanRL's files in torch and JAX, rlox, rejax, PureJaxRL. One that is not
installed is left out and named; --python says which Python has it, if this one has not. Prints steps per CPU-second and
returns of each, and how many times as fast Operant's engines are; writes the numbers to --out after every run. A ratio
of the same minute on the same machine is worth more than any absolute rate. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.matched import CELLS
from operant.report.stats import Estimate, mean_interval

RESULTS = Path(__file__).parent / "results" / "versus_peers.json"
ROOT = Path(__file__).parents[1]
ENGINES = {"operant": ("torch",), "operant-jax": ("jax",), "operant-fused": ("jax",)}
PEERS = {
    "sb3": ("stable_baselines3",),
    "sbx": ("sbx",),
    "tianshou": ("tianshou",),
    "cleanrl": ("torch", "tyro", "gymnasium", "tensorboard"),
    "cleanrl-jax": ("jax", "flax", "torch", "tyro", "gymnasium", "tensorboard"),
    "rlox": ("rlox",),
    "rejax": ("rejax",),
    "purejaxrl": ("jax", "flax", "distrax", "gymnax"),
}
"""What each needs to be importable."""
STEADY = "steady_steps_per_cpu_second"
CHECKOUTS = {"cleanrl": "cleanrl", "cleanrl-jax": "cleanrl", "purejaxrl": "purejaxrl"}
"""Those that are no packages, and the option that names the folder of their repository."""


@dataclass(frozen=True)
class Library:
    """A library that can be run here: by which Python, and from which checkout if it is no package."""

    name: str
    python: str = sys.executable
    checkout: Path | None = None


class RunFailed(SystemExit):
    """A run's process ended with an error; the message is what it wrote."""


def lacking(library: Library) -> str:
    """Why a library cannot be run, in a few words; nothing if it can."""
    if (option := CHECKOUTS.get(library.name)) and library.checkout is None:
        return f"no checkout: --{option} DIR"
    if library.checkout is not None and not (library.checkout / str(option)).is_dir():
        return f"{library.checkout} has no folder {option}"
    modules = {**ENGINES, **PEERS}[library.name]
    code = f"from importlib.util import find_spec; print(*(m for m in {modules} if not find_spec(m)))"
    try:
        found = subprocess.run([library.python, "-c", code], check=False, capture_output=True, text=True)
    except OSError as error:
        return f"{library.python}: {error.strerror}"
    missing = found.stdout.split()
    return f"not installed ({', '.join(missing)}): --python {library.name}=PYTHON" if missing else ""


def wanted(cell: str) -> list[str]:
    """Operant's engines and the peers of a cell, installed or not."""
    return [*CELLS[cell].engines, *CELLS[cell].peers]


def measure(
    library: str | Library, cell: str, seed: int, threads: int, steps: int | None = None, episodes: int | None = None
) -> dict[str, Any]:
    """One training run in a fresh process, as long as the cell says unless `steps` are given."""
    library = Library(library) if isinstance(library, str) else library
    argv = [library.python, "-m", "benchmarks.one_run", library.name, cell, "--seed", str(seed)]
    for option, value in {"--steps": steps, "--episodes": episodes, "--checkout": library.checkout}.items():
        argv += [] if value is None else [option, str(value)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "BENCHMARK_THREADS": str(threads), "PYTHONPATH": path}
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RunFailed(f"{' '.join(argv)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def summarise(rows: list[dict[str, Any]], short: dict[str, Any] | None) -> dict[str, Any]:
    """Median rates, and mean returns with their intervals over seeds, of one library's runs of one cell.

    The steady rate is of the steps beyond those of a `short` run: neither compiling nor filling the replay counts.
    """
    summary = {
        "steps_per_cpu_second": statistics.median(row["steps"] / row["cpu_seconds"] for row in rows),
        "steps_per_second": statistics.median(row["steps"] / row["seconds"] for row in rows),
        "greedy": mean_interval([row["greedy"] for row in rows]).as_dict(),
        "sampled": mean_interval([row["sampled"] for row in rows]).as_dict(),
    }
    if short is not None:
        summary["steady_steps_per_cpu_second"] = statistics.median(
            (row["steps"] - short["steps"]) / (row["cpu_seconds"] - short["cpu_seconds"]) for row in rows
        )
    return summary


def summarise_all(rows: list[dict[str, Any]], shorts: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By cell and library, in the order in which they were run."""
    pairs = dict.fromkeys((row["cell"], row["library"]) for row in rows)
    short_of = {(row["cell"], row["library"]): row for row in shorts}
    summary: dict[str, dict[str, Any]] = {cell: {} for cell, _ in pairs}
    for pair in pairs:
        mine = [row for row in rows if (row["cell"], row["library"]) == pair]
        summary[pair[0]][pair[1]] = summarise(mine, short_of.get(pair))
    return summary


def table(summary: dict[str, dict[str, Any]]) -> str:
    """The result in words; the ratios are those of Operant's engines to each, in steady steps per CPU-second."""
    lines = [
        f"{'cell':23}{'library':15}{'steps/CPU-s':>12}{'steady':>9}{'torch is':>10}{'jax is':>8}"
        f"{'greedy return':>33}{'sampled return':>33}"
    ]
    for cell, by_library in summary.items():
        for library, found in by_library.items():
            ratios = [ratio(by_library, ours, library) for ours in ("operant", "operant-jax")]
            lines.append(
                f"{cell:23}{library:15}{found['steps_per_cpu_second']:12,.0f}{found[STEADY]:9,.0f}"
                f"{ratios[0]:>10}{ratios[1]:>8}"
                f"{_interval(found['greedy']):>33}{_interval(found['sampled']):>33}"
            )
    return "\n".join(lines)


def ratio(by_library: dict[str, Any], ours: str, theirs: str) -> str:
    """How many times the steady rate of `theirs` that of `ours` is; nothing where either was not run."""
    if ours not in by_library or theirs not in by_library:
        return ""
    return f"{by_library[ours][STEADY] / by_library[theirs][STEADY]:.2f}"


def _interval(estimate: dict[str, Any]) -> str:
    return Estimate(**estimate).text(1)


def machine(threads: int) -> dict[str, Any]:
    """What the numbers were taken with; each library's versions stand beside them."""
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "threads": threads,
        "load": os.getloadavg()[0],
    }


class Comparison:
    """The runs so far, and what was left out."""

    def __init__(self, threads: int, out: Path) -> None:
        self.threads, self.out = threads, out
        self.rows: list[dict[str, Any]] = []
        self.shorts: list[dict[str, Any]] = []
        self.versions: dict[str, dict[str, str]] = {}
        self.left_out: dict[str, str] = {}

    def leave_out(self, name: str, reason: str) -> None:
        """Say so once, here and in the result."""
        if name not in self.left_out:
            self.left_out[name] = reason
            print(f"left out: {name}: {reason}", flush=True)

    def run(self, library: Library, cell: str, seed: int, steps: int | None, episodes: int | None) -> None:
        """A run of the cell's length or of `steps`, and with the first seed a short one; then write everything.

        A peer that fails in a cell is left out of it, and the others go on.
        """
        try:
            if seed == 1:
                self.shorts.append(self._measured(library, cell, seed, CELLS[cell].warm, 1))
            self.rows.append(self._measured(library, cell, seed, steps, episodes))
            print(json.dumps(self.rows[-1]), flush=True)
        except RunFailed as failure:
            if library.name in ENGINES:
                raise
            self.leave_out(f"{library.name} in {cell}", str(failure).splitlines()[-1])
        self.out.write_text(json.dumps(self.document(), indent=2) + "\n")

    def _measured(self, library: Library, cell: str, seed: int, *given: int | None) -> dict[str, Any]:
        row = measure(library, cell, seed, self.threads, *given)
        self.versions[library.name] = row.pop("versions")
        return row

    def document(self) -> dict[str, Any]:
        """What is written."""
        return {
            "machine": machine(self.threads),
            "versions": self.versions,
            "left_out": self.left_out,
            "summary": summarise_all(self.rows, self.shorts),
            "runs": self.rows,
            "short_runs": self.shorts,
        }


def pair(text: str) -> tuple[str, str]:
    """`PEER=PYTHON` of the command line."""
    name, _, python = text.partition("=")
    if name not in PEERS or not python:
        raise argparse.ArgumentTypeError(f"{text!r} is not PEER=PYTHON, where PEER is one of {', '.join(PEERS)}")
    return name, python


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--libraries", nargs="+", default=[*ENGINES, *PEERS], choices=[*ENGINES, *PEERS])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--steps", type=int, help="how long each trains, unless as long as the cell says")
    parser.add_argument("--episodes", type=int, help="how many each is judged on, unless as many as the cell says")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each run")
    parser.add_argument("--python", nargs="+", type=pair, default=[], metavar="PEER=PYTHON", help="who runs a peer")
    parser.add_argument("--cleanrl", type=Path, metavar="DIR", help="a checkout of CleanRL")
    parser.add_argument("--purejaxrl", type=Path, metavar="DIR", help="a checkout of PureJaxRL")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the numbers go")
    return parser.parse_args()


def main() -> None:
    """Alternate the libraries over the seeds, then report."""
    asked = arguments()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    pythons, comparison = dict(asked.python), Comparison(asked.threads, asked.out)
    names = [name for name in asked.libraries if any(name in wanted(cell) for cell in asked.cells)]
    libraries: dict[str, Library] = {}
    for name in names:
        option = CHECKOUTS.get(name)
        library = Library(name, pythons.get(name, sys.executable), getattr(asked, option) if option else None)
        if reason := lacking(library):
            comparison.leave_out(name, reason)
        else:
            libraries[name] = library
    for seed in range(1, asked.seeds + 1):
        for cell in asked.cells:
            for name in wanted(cell):
                if name in libraries:
                    comparison.run(libraries[name], cell, seed, asked.steps, asked.episodes)
    print(table(comparison.document()["summary"]))


if __name__ == "__main__":
    main()
