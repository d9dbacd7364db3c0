"""Which research tasks there are, found without loading anything of them."""

from __future__ import annotations

from pathlib import Path

FILE = "task.yaml"
SHIPPED = Path(__file__).with_name("tasks")
ABOUT = "about:"
MLGYM = "mlgym:"


def shipped() -> dict[str, Path]:
    """The folders of the tasks that come with Operant, by name."""
    return {file.parent.name: file.parent for file in sorted(SHIPPED.glob(f"*/{FILE}"))}


def about(folder: Path) -> str:
    """The task's line about itself, read without a parser, for lists that must be there at once."""
    lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix(ABOUT).strip().strip("\"'") for line in lines if line.startswith(ABOUT)), "")


def is_folder(name: str) -> bool:
    """Whether a name is a shipped task's, the path of a folder with a task.yaml or of that file, or mlgym:FILE."""
    return name.startswith(MLGYM) or name in shipped() or folder_of(name).joinpath(FILE).is_file()


def folder_of(name: str) -> Path:
    """The folder of a task by its name or path."""
    path = Path(name)
    return shipped().get(name) or (path.parent if path.name == FILE else path)
