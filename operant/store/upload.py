"""Pushing an experiment: parts first, then the manifest that names them; what is there already is not sent again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.run.checkpoint import Checkpoint
from operant.run.layout import EXPERIMENT_FILE, METRICS_FILE, shown
from operant.run.run import Experiment, Run
from operant.store.backend import Report, Store, StoreError
from operant.store.listing import stored_units
from operant.store.manifest import (
    MANIFEST,
    OBJECTS,
    Entry,
    Manifest,
    Part,
    checkpoint_frames,
    checkpoint_of,
    cuts,
    decode,
    in_checkpoint,
)
from operant.store.snapshot import (
    ChangedMeanwhile,
    Source,
    attempts_of,
    experiment_sources,
    session_facts,
    session_sources,
    unit_paths,
)
from operant.store.transfer import remember

THREADS = 4
IN_FLIGHT = 8
READINGS = 20
READING_SECONDS = 0.1
HEARTBEAT_SECONDS = 120.0
Pages = Callable[[Store, str], Mapping[str, bytes]]


@dataclass
class Sent:
    """What a push did. `files` and `bytes` were sent; `kept` files were there already."""

    place: str
    files: int = 0
    bytes: int = 0
    kept: int = 0
    deleted: int = 0
    damaged: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The same for `--json`."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Unit:
    """The experiment's own files, or those of one session, as they were read."""

    path: str
    manifest: Manifest
    sources: dict[str, Source]
    before: Manifest | None

    @property
    def changed(self) -> set[str]:
        """The files that differ from what was stored before."""
        before = {} if self.before is None else self.before.files
        return {path for path, entry in self.manifest.files.items() if before.get(path) != entry}

    @property
    def is_news(self) -> bool:
        """Whether a reader learns something from the manifest, be it only that the session still runs."""
        before, now = self.before, self.manifest
        return before is None or before.files != now.files or before.facts != now.facts or _is_old(before)


class Uploader:
    """Pushes one experiment, once or again and again; parts that it has seen there or sent are remembered (final).

    `only` names the sessions to push; `delete` removes there what is no longer here; `force` sends everything again and
    replaces whatever is there. `pages` are for people who look at a plain store, such as a model card.
    """

    def __init__(
        self,
        store: Store,
        experiment: Path,
        *,
        only: Sequence[str] | None = None,
        delete: bool = False,
        force: bool = False,
        report: Report = lambda line: None,
        pages: Pages = lambda store, key: {},
    ) -> None:
        self.experiment = experiment
        self._pages = pages
        self.key = experiment_key(experiment)
        self.place = store.place(self.key)
        self.is_plain = store.plain
        self._store = store
        self._only = only
        self._delete = delete
        self._force = force
        self._report = report
        self._there: dict[str, int] | None = None
        self._entries: dict[tuple[Any, ...], Entry] = {}
        self._sent = Sent(self.place)

    def push(self) -> Sent:
        """Bring everything there; raises `StoreError` where that fails, and then nothing is half published."""
        self._sent = Sent(self.place)
        try:
            self._refuse_namesake()
            if self._there is None:
                self._there = {} if self._force or self._store.plain else self._store.sizes(f"{self.key}/{OBJECTS}")
            units = unit_paths(self.experiment) if self._only is None else self._only
            # The experiment itself comes last: it appears when all of its sessions are there.
            groups = [[*units, ""]] if self._store.plain else [[path] for path in (*units, "")]
            for paths in groups:
                self._read_and_publish(paths)
            if self._delete and not self._store.plain:
                self._sweep()
        except BaseException:
            # Parts that were on their way may not have arrived: the next push asks again.
            self._there = None
            self._entries.clear()
            raise
        return self._sent

    def _read_and_publish(self, paths: Sequence[str]) -> None:
        """Units that are published together."""
        for _ in range(READINGS):
            try:
                with ExitStack() as stack:
                    units = [self._read(path, stack) for path in paths]
                    self._commit(units) if self._store.plain else self._publish(units[0])
                return
            except ChangedMeanwhile:
                time.sleep(READING_SECONDS)
        raise StoreError(
            "the run changes faster than it can be read",
            place=shown(self.experiment),
            remedy="the same command again; or a larger meta.save_frequency",
            is_transient=True,
        )

    def _read(self, path: str, stack: ExitStack) -> Unit:
        """Hash every file and send the parts that are not there."""
        before = self._stored(path)
        if not path:
            sources, saved, attempts, facts = experiment_sources(self.experiment, stack), [], 0, {}
        else:
            session = self.experiment / path
            attempts = attempts_of(session)
            sources, saved = session_sources(session, stack)
            size = next((each.size for each in sources if each.path == METRICS_FILE), 0)
            facts = session_facts(Run.open(session), saved, size)
            self._refuse_older(path, before, saved)
        entries = self._send_all(sources)
        if path and attempts_of(self.experiment / path) != attempts:
            raise ChangedMeanwhile
        files = {**_still_valid(before, sources, saved, self._delete), **self._undamaged(path, sources, entries)}
        kind = "session" if path else "experiment"
        return Unit(path, Manifest(kind, files, facts), {each.path: each for each in sources}, before)

    def _send_all(self, sources: list[Source]) -> dict[str, Entry]:
        with ThreadPoolExecutor(THREADS) as pool:
            waiting: list[Future[None]] = []
            try:
                return {source.path: self._send(source, pool, waiting) for source in sources}
            finally:
                for each in waiting:
                    each.result()

    def _send(self, source: Source, pool: ThreadPoolExecutor, waiting: list[Future[None]]) -> Entry:
        """The entry of a file, whose parts are on their way."""
        try:
            identity = source.identity
        except FileNotFoundError:
            raise ChangedMeanwhile from None
        if identity in self._entries:
            return self._entries[identity]
        whole, parts, offset = hashlib.sha256(), [], 0
        for size in cuts(source.size, source.growing):
            data = source.read(offset, size)
            offset += size
            whole.update(data)
            part = Part(hashlib.sha256(data).hexdigest(), size)
            parts.append(part)
            if not self._store.plain:
                self._send_part(part, data, pool, waiting)
        if source.path.endswith(".jsonl") and source.size and not data.endswith(b"\n"):
            raise ChangedMeanwhile
        entry = Entry(source.size, whole.hexdigest(), tuple(parts))
        if self._store.plain:
            entry = replace(entry, parts=(Part(entry.sha256, entry.size),))
        # Remembered only when its parts have arrived, which an error above prevents.
        while len(waiting) > IN_FLIGHT:
            waiting.pop(0).result()
        self._entries[identity] = entry
        return entry

    def _send_part(self, part: Part, data: bytes, pool: ThreadPoolExecutor, waiting: list[Future[None]]) -> None:
        assert self._there is not None, "push asks what is there first"
        if self._there.get(part.sha256) == part.size:
            return
        while len(waiting) > IN_FLIGHT:
            waiting.pop(0).result()
        self._there[part.sha256] = part.size
        self._sent.bytes += part.size
        waiting.append(pool.submit(self._store.write, f"{self.key}/{OBJECTS}/{part.sha256}", data))

    def _undamaged(self, path: str, sources: list[Source], entries: dict[str, Entry]) -> dict[str, Entry]:
        """The entries less those of checkpoints whose files are not what their manifest says."""
        bad = [each for each in sources if each.expected and entries[each.path].sha256 != each.expected]
        folders = tuple(f"{checkpoint_of(each.path)}/" for each in bad)
        for each in bad:
            name = shown(self.experiment / path / each.path)
            if name not in self._sent.damaged:
                self._sent.damaged.append(name)
                self._report(f"{name} is damaged: its checkpoint is not sent")
        return {name: entry for name, entry in entries.items() if not name.startswith(folders)}

    def _publish(self, unit: Unit) -> None:
        """Write the manifest, if anything in it is new or its last one is old."""
        self._count(unit)
        if self._force or unit.is_news:
            self._store.write(self._manifest_key(unit.path), unit.manifest.encode())
        remember(self.experiment, self._store.url, unit.path, unit.manifest)

    def _commit(self, units: list[Unit]) -> None:
        """All changed files of all units, and the card, at once."""
        files: dict[str, Path | bytes] = {}
        doomed: list[str] = []
        for unit in units:
            folder = self._manifest_key(unit.path).removesuffix(MANIFEST)
            changed = set(unit.manifest.files) if self._force else self._count(unit)
            files |= {folder + path: unit.sources[path].content() for path in changed if path in unit.sources}
            doomed += [
                folder + path for path in (unit.before.files if unit.before else ()) if path not in unit.manifest.files
            ]
            if self._force or unit.is_news:
                files[folder + MANIFEST] = unit.manifest.encode()
        if files:
            files |= self._pages(self._store, self.key)
            self._sent.bytes = sum(
                len(each) if isinstance(each, bytes) else each.stat().st_size for each in files.values()
            )
            self._store.commit(files, doomed, f"operant push {self.key}")
            self._sent.deleted = len(doomed)
        for unit in units:
            remember(self.experiment, self._store.url, unit.path, unit.manifest)

    def _count(self, unit: Unit) -> set[str]:
        """The files that differ from what was stored before, which are counted as sent."""
        changed = unit.changed
        self._sent.files += len(changed)
        self._sent.kept += len(unit.manifest.files) - len(changed)
        return changed

    def _stored(self, path: str) -> Manifest | None:
        key = self._manifest_key(path)
        data = self._store.read(key)
        if data is None:
            return None
        try:
            return decode(data, self._store.place(key))
        except RunError:
            if not self._force:
                raise
            return None

    def _manifest_key(self, path: str) -> str:
        return "/".join(part for part in (self.key, path, MANIFEST) if part)

    def _refuse_namesake(self) -> None:
        """Two machines may start a run of one name in the same second."""
        there = self._stored("")
        if self._force or there is None or EXPERIMENT_FILE not in there.files:
            return
        here = hashlib.sha256((self.experiment / EXPERIMENT_FILE).read_bytes()).hexdigest()
        if there.files[EXPERIMENT_FILE].sha256 != here:
            raise RunError(
                "another run of this name is stored there",
                place=self.place,
                remedy="another prefix; or --force, which puts this run in its place",
            )

    def _refuse_older(self, path: str, before: Manifest | None, saved: list[Checkpoint]) -> None:
        """A copy that stayed behind must not replace what another machine trained since."""
        stored = max(checkpoint_frames(before.files), default=0) if before else 0
        here = saved[-1].at.frames if saved else 0
        if stored > here and not self._force:
            raise RunError(
                f"a newer state of {path} is stored there, at frame {stored:,}; this directory has frame {here:,}",
                place=self.place,
                remedy=f"`operant pull {self.place}` to continue from that; or --force, which replaces it",
            )

    def _sweep(self) -> None:
        """Remove the parts that no manifest of this experiment names."""
        units = ["", *stored_units(self._store, self.key)]
        manifests = [manifest for unit in units if (manifest := self._stored(unit)) is not None]
        needed = {part.sha256 for manifest in manifests for part in manifest.parts()}
        doomed = [name for name in self._store.sizes(f"{self.key}/{OBJECTS}") if name not in needed]
        self._store.delete([f"{self.key}/{OBJECTS}/{name}" for name in doomed])
        for name in doomed:
            (self._there or {}).pop(name, None)
        if doomed:
            self._entries.clear()
        self._sent.deleted = len(doomed)


def experiment_key(experiment: Path) -> str:
    """Where an experiment lies in a store: its spec's name and its folder's, as below `runs`."""
    return f"{Experiment(experiment).document['spec']}/{experiment.name}"


def _still_valid(
    before: Manifest | None, sources: list[Source], saved: list[Checkpoint], delete: bool
) -> dict[str, Entry]:
    """What was stored earlier and is not here any more; a checkpoint only where newer ones are here."""
    if before is None or delete:
        return {}
    newest = saved[-1].at.frames if saved else 0
    here = {each.path for each in sources}
    return {
        path: entry
        for path, entry in before.files.items()
        if path not in here and (not in_checkpoint(path) or int(path.split("/")[1]) < newest)
    }


def _is_old(manifest: Manifest | None) -> bool:
    """Whether a manifest of a running session is so old that a reader would take the session for lost."""
    if manifest is None or manifest.facts.get("state") != "running":
        return False
    age = datetime.now(UTC) - datetime.fromisoformat(manifest.updated)
    return age.total_seconds() > HEARTBEAT_SECONDS
