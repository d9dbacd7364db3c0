"""The `scripts/uv` of the documentation's test: `run` runs in this environment, and `sync` installs nothing.

The extras and groups that a page names must be there.
"""

from __future__ import annotations

import os
import sys
import tomllib

from tests.pages import ROOT

project = tomllib.loads((ROOT / "pyproject.toml").read_text())
known = {*project["project"]["optional-dependencies"], *project["dependency-groups"]}
command, *words = sys.argv[1:]
while words and words[0].startswith("--"):
    option = words.pop(0)
    if option in ("--extra", "--group") and (named := words.pop(0)) not in known:
        sys.exit(f"pyproject.toml has no extra and no group {named}")
if command == "run":
    os.execvp(words[0], words)
