from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import operant

LOAD = """
import sys
import operant.spec.describe, operant.spec.describe, operant.spec.load, operant.spec.space
operant.spec.load.load(sys.argv[1])
operant.spec.describe.json_schema()
print([name for name in ("torch", "jax", "numpy", "gymnasium", "ray", "transformers") if name in sys.modules])
"""
LIST = """
import sys
from operant.spec.builtin import builtin_names
builtin_names()
print([name for name in ("pydantic", "ruamel") if name in sys.modules])
"""


@pytest.mark.parametrize("code", [LOAD, LIST])
def test_nothing_heavy_is_loaded(code: str, tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("env: {num_envs: 2}\nsearch: {agent.algorithm.gamma__uniform: [0, 1]}\n")
    root = Path(operant.__file__).parents[1]
    result = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, cwd=root)
    assert (result.stdout, result.stderr) == ("[]\n", "")
