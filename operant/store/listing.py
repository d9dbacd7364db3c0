"""What a store holds: its experiments, found by their manifests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch

from operant.errors import UsageError
from operant.store.backend import Store
from operant.store.manifest import MANIFEST, Manifest, decode

THREADS = 8
STALE_SECONDS = 600.0


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment in a store; `units` holds its own manifest as "" and those of its sessions by path."""

    key: str
    units: dict[str, Manifest]

    @property
    def sessions(self) -> dict[str, Manifest]:
        """The sessions' manifests."""
        return {unit: manifest for unit, manifest in self.units.items() if unit}

    @property
    def size(self) -> int:
        """Bytes that a pull would fetch."""
        return sum(manifest.size for manifest in self.units.values())

    @property
    def updated(self) -> str:
        """When something of it was stored last."""
        return max(manifest.updated for manifest in self.units.values())


def find_experiments(store: Store) -> list[str]:
    """The keys of the experiments at a URL, which may be one itself, and at most two folders below it, sorted."""
    if _manifest(store, "") is not None:
        return [""]
    with ThreadPoolExecutor(THREADS) as pool:
        first = store.folders("")
        own = list(pool.map(lambda key: is_experiment(store, key), first))
        deeper = pool.map(lambda key: [f"{key}/{name}" for name in store.folders(key)], _where(first, own, False))
        second = [key for keys in deeper for key in keys]
        also = list(pool.map(lambda key: is_experiment(store, key), second))
    return sorted([*_where(first, own, True), *_where(second, also, True)])


def is_experiment(store: Store, key: str) -> bool:
    """Whether a key holds a run that was published; one whose first push has not ended has only its sessions."""
    found = _manifest(store, key)
    return found is not None and found.kind == "experiment"


def read_experiment(store: Store, key: str) -> StoredExperiment:
    """All manifests of a stored experiment."""
    own = _manifest(store, key)
    if own is None:
        raise no_experiment(store, key)
    if own.kind != "experiment":
        raise UsageError("this is one session of a run", place=store.place(key), remedy="name the run itself")
    with ThreadPoolExecutor(THREADS) as pool:
        paths = stored_units(store, key)
        found = list(pool.map(lambda path: _manifest(store, f"{key}/{path}".lstrip("/")), paths))
    sessions = {path: manifest for path, manifest in zip(paths, found, strict=True) if manifest is not None}
    return StoredExperiment(key, {"": own, **sessions})


def stored_units(store: Store, key: str) -> list[str]:
    """The session folders of a stored experiment, as relative paths, in order."""
    trials = [name for name in store.folders(key) if name.startswith("trial_")]
    return [
        f"{trial}/{name}"
        for trial in trials
        for name in sorted(store.folders(f"{key}/{trial}".lstrip("/")), key=lambda name: (len(name), name))
        if name.startswith("session_")
    ]


def choose_experiments(store: Store, pattern: str | None) -> list[str]:
    """Those that fit a pattern; without one the only experiment, or the newest where all are of one spec."""
    found = find_experiments(store)
    if not found:
        raise no_experiment(store, "")
    if pattern is not None:
        fitting = [key for key in found if fnmatch(key, pattern) or fnmatch(key.split("/")[0], pattern)]
        if not fitting:
            raise UsageError(
                f"no run there fits {pattern!r}", place=store.url, remedy=f"there are {_some(found)}; operant ls"
            )
        return fitting
    if len({key.partition("/")[0] for key in found if "/" in key}) > 1:
        raise UsageError(
            f"{len(found)} runs are stored there: {_some(found)}",
            place=store.url,
            remedy=f"name one ({store.place(found[-1])}), or give a pattern ('*' for all)",
        )
    return found[-1:]


def no_experiment(store: Store, key: str) -> UsageError:
    """The error for an address without a run."""
    return UsageError(
        "no run is stored there", place=store.place(key), remedy="`operant ls URL` lists a store; push one first"
    )


def state_of(manifest: Manifest, now: datetime | None = None) -> str:
    """The state of a stored session; one that was running and has not been heard of is stopped."""
    state = str(manifest.facts.get("state", "?"))
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(manifest.updated)
    return "stopped" if state == "running" and age.total_seconds() > STALE_SECONDS else state


def _manifest(store: Store, key: str) -> Manifest | None:
    name = f"{key}/{MANIFEST}".lstrip("/")
    data = store.read(name)
    return None if data is None else decode(data, store.place(name))


def _where(keys: list[str], flags: list[bool], wanted: bool) -> list[str]:
    return [key for key, flag in zip(keys, flags, strict=True) if flag == wanted]


def _some(found: list[str]) -> str:
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")
