"""The code of the page about the Python API runs from top to bottom, as one script."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/howto/python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_the_page_runs_as_a_script_without_a_main_guard(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) >= 8
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    ran = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert "did you mean" in ran.stdout
    assert "stopped" in lines
    assert "done True" in lines
