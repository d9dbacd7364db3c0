"""Help must be quick and the light rooms light: heavy modules load only in commands that need them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"gymnasium", "imageio", "jax", "matplotlib", "numpy", "pydantic", "torch", "transformers"}

STARTS = {
    "operant --help": ("from operant.cli.app import run; run(['--help'])", HEAVY),
    "operant train --help": (
        "from operant.cli.app import run; run(['train', '--help'])",
        HEAVY - {"pydantic"},
    ),  # Typer's own
    "completion in the shell": ("import operant.cli.app, operant.cli.completion", {*HEAVY, "rich", "ruamel", "typer"}),
    "the spec room": ("import operant.spec.load", HEAVY - {"pydantic"}),
    "the run room": ("import operant.run.run, operant.run.session", HEAVY - {"numpy"}),
    "the launch room": ("import operant.launch.trial", HEAVY - {"numpy"}),
}


@pytest.mark.parametrize("start", STARTS)
def test_loads_no_heavy_module(start: str) -> None:
    code, heavy = STARTS[start]
    tell = "; import json, sys; print(); print(json.dumps([name for name in sys.modules if '.' not in name]))"
    result = subprocess.run([sys.executable, "-c", code + tell], capture_output=True, text=True, check=True)
    loaded = set(json.loads(result.stdout.splitlines()[-1]))
    assert loaded & heavy == set()
