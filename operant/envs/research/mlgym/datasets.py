"""Where the data of a task lies: in the checkout, in a folder that the user names, or in the hub's local cache.

Nothing is fetched. What is not there is told in one line that says what to put where. A dataset's file can be read on
its own (`read_dataset`), without a task.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from operant.envs.research.mlgym.checkout import Checkout, files_below
from operant.envs.research.mlgym.layouts import converted, converts
from operant.envs.research.mlgym.made import made_by_helpers
from operant.envs.research.mlgym.sheets import DataSheet, checkout_of, read_sheet
from operant.envs.text.sources import VARIABLE
from operant.errors import UsageError

DATA = "data"
HELPERS = "_helpers"
LARGEST = 2 << 30  # bytes; a workspace lies in memory
# How a program asks for data or a model of the hub: it finds a folder of that name in its workspace first.
ASKED_FOR = re.compile(r"""\b(load_dataset|from_pretrained)\(\s*["']([\w.-]+(?:/[\w.-]+)?)["']""")

Files = dict[str, bytes]


@dataclass(frozen=True)
class Found:
    """The files of a dataset or a model: where they come from, how large they are, and what reads or makes them.

    `mark` says how they differ from the data that the task was made for, if they do.
    """

    name: str
    source: str
    size: int
    read: Callable[[], Files]
    mark: str = ""


@dataclass(frozen=True)
class Lacking:
    """Data that is not there: in one line, what it is and what to put where."""

    name: str
    cause: str


def read_dataset(file: str, places: str | None = None) -> tuple[DataSheet, Found | Lacking]:
    """A dataset's YAML of a checkout, and its data."""
    root, path = checkout_of(file), Path(file).resolve()
    sheet = read_sheet(DataSheet, path)
    return sheet, find_dataset(root, path, sheet, places)


def find_dataset(root: Path, file: Path, sheet: DataSheet, places: str | None) -> Found | Lacking:
    """The data of a sheet."""
    own = root / sheet.data_path
    if sheet.is_local and own.is_dir():
        return _found(sheet, own, sheet.data_path)
    names = {_key(name) for name in _names(file, sheet)}
    for place in _places(places):
        if folder := _folder_in(place, sheet.data_path, names):
            return _found(sheet, folder, str(folder))
    if not sheet.is_local and (snapshot := hub_snapshot("datasets", sheet.data_path)):
        return _found(sheet, snapshot, "the hub's cache")
    helpers = own.parent / HELPERS
    if sheet.is_local and helpers.is_dir():
        size = sum(path.stat().st_size for path in files_below(helpers).values())
        return Found(sheet.name, f"made by {HELPERS}", 2 * size, lambda: made_by_helpers(helpers, own.name))
    return Lacking(sheet.name, _what_to_put_where(sheet))


def find_models(checkout: Checkout, artefacts: Sequence[str], places: str | None) -> list[Found | Lacking]:
    """The models of the hub that the starter code begins with."""
    names = {name for kind, name in _asked_for(checkout) if kind == "from_pretrained"}
    wanted = sorted(names - {artefact.rstrip("/") for artefact in artefacts})
    return [_find_model(name, places) for name in wanted]


def asked_names(checkout: Checkout, sheet: DataSheet) -> list[str]:
    """The names by which programs ask for a dataset of the hub; they may leave its owner out."""
    last = sheet.data_path.rpartition("/")[2]
    asked = {name for kind, name in _asked_for(checkout) if kind == "load_dataset"}
    return sorted(name for name in asked if name.rpartition("/")[2] == last) or [sheet.data_path]


def hub_snapshot(kind: str, name: str) -> Path | None:
    """The folder of a repository in the hub's local cache, of its main branch if that is known."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    folder = cache / f"{kind}--{name.replace('/', '--')}"
    main = folder / "refs" / "main"
    if main.is_file() and (folder / "snapshots" / main.read_text().strip()).is_dir():
        return folder / "snapshots" / main.read_text().strip()
    return next(iter(sorted(folder.glob("snapshots/*"))), None)


def _find_model(name: str, places: str | None) -> Found | Lacking:
    found = [folder for place in _places(places) if (folder := _folder_in(place, name, {_key(name.split("/")[-1])}))]
    folder = found[0] if found else hub_snapshot("models", name)
    if folder is None:
        return Lacking(name, f"the model {name} is not there: put its folder at FOLDER/{name}, then --data FOLDER")
    size = sum(path.stat().st_size for path in files_below(folder).values())
    return Found(name, str(folder), size, partial(_read, folder, name))


def _asked_for(checkout: Checkout) -> set[tuple[str, str]]:
    everything = b"\n".join(checkout.programs.values()).decode(errors="replace")
    return {(kind, name) for kind, name in ASKED_FOR.findall(everything)}


def _found(sheet: DataSheet, folder: Path, source: str) -> Found | Lacking:
    size = sum(path.stat().st_size for path in files_below(folder).values())
    if size > LARGEST:
        return Lacking(sheet.name, f"the data of {sheet.name} in {source} is larger than {LARGEST >> 30} GiB")
    if converts(folder):
        files, mark = converted(folder)
        return Found(sheet.name, source, 4 * size, files, mark)
    return Found(sheet.name, source, size, lambda: _read(folder, ""))


def _read(folder: Path, prefix: str) -> Files:
    return {f"{prefix}/{name}".lstrip("/"): path.read_bytes() for name, path in files_below(folder).items()}


def _names(file: Path, sheet: DataSheet) -> list[str]:
    """What a folder with this data may be called."""
    parts = [part for part in sheet.data_path.split("/") if part != DATA]
    return [sheet.name, file.stem, file.stem.removesuffix("HF"), *parts[-1:]]


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _places(named: str | None) -> list[Path]:
    """The folders that were named, or those of OPERANT_DATA that are there; `UsageError` for one that is not."""
    given = named if named is not None else os.environ.get(VARIABLE, "")
    places = [Path(place.strip()) for place in given.split(",") if place.strip()]
    if named is not None and (absent := next((place for place in places if not place.is_dir()), None)):
        raise UsageError(
            f"there is no folder {absent}: MLGym's data is read from local folders", remedy="--data FOLDER"
        )
    return [place for place in places if place.is_dir()]


def _folder_in(place: Path, path: str, names: set[str]) -> Path | None:
    """A folder below a place that is called as the data is, or the place itself."""
    if (place / path).is_dir():
        return place / path
    below = sorted(folder for folder in place.iterdir() if folder.is_dir() and _key(folder.name) in names)
    return next(iter(below), place if _key(place.resolve().name) in names else None)


def _what_to_put_where(sheet: DataSheet) -> str:
    if sheet.is_local:
        here = f"the data of {sheet.name} is not in {sheet.data_path}"
        return f"{here}: put it there, or at FOLDER/{sheet.data_path}, then --data FOLDER"
    owner, _, last = sheet.data_path.rpartition("/")
    get = f"hf download --repo-type dataset {sheet.data_path}"
    where = f"{owner}/{last}" if owner else last
    return f"the dataset {sheet.name} is neither in the hub's cache nor at FOLDER/{where}: {get}, or --data FOLDER"
