"""The script that Streamlit runs: the app on the folder named on its command line."""

from __future__ import annotations

import sys
from pathlib import Path

from operant.app.frame import show

show(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
