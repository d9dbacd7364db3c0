"""Files that a command writes where the user says."""

from __future__ import annotations

from pathlib import Path

from operant.errors import UsageError


def new_file(path: Path) -> Path:
    """The path, if nothing is there and its folder is: asked before the work whose result it will hold."""
    if path.exists():
        raise _taken(path)
    if not path.parent.is_dir():
        raise UsageError("its folder does not exist", place=str(path), remedy=f"mkdir -p {path.parent}")
    return path


def _taken(path: Path) -> UsageError:
    from operant.run.layout import shown

    return UsageError(
        "the file exists already, and nothing is ever overwritten",
        place=shown(path),
        remedy=f"another name, or remove it first: rm {shown(path)}",
    )


def write_new(path: Path, text: str, instead: str) -> None:
    """Write a file that does not exist yet; `instead` is a command that shows the text without a file."""
    from operant.run.layout import shown

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as fault:
        raise UsageError(f"the file cannot be written: {fault.strerror}", place=shown(path), remedy=instead) from None


def record_folder(target: str, root: Path, out: Path | None) -> Path:
    """The folder, not made yet, for the records of a model without a run.

    Its name has microseconds, so that evaluations of one model that begin together have one each.
    """
    from datetime import datetime

    from operant.run.layout import shown, stamp

    name = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in Path(target).name) or "model"
    now = datetime.now()
    folder = out or root / "eval" / name / f"{stamp(now)}-{now.microsecond:06d}"
    if folder.exists() and any(folder.iterdir()):
        raise UsageError("the folder has files already, and nothing is ever overwritten", place=shown(folder))
    return folder
