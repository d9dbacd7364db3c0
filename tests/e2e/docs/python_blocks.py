"""Runs the Python blocks of a page in one namespace: a file's name a line in, a word a line out."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
os.dup2(1, 2)
sys.path.insert(0, "")
namespace: dict[str, object] = {"__name__": "__main__"}
for line in sys.stdin:
    path = Path(line.strip())
    try:
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        answers.write("done\n")
    except BaseException:
        traceback.print_exc()
        answers.write("failed\n")
    sys.stdout.flush()
