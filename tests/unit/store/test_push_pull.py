"""Runs pushed to a folder and pulled from it: what is sent, what a reader can see, and what is never overwritten."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operant.api.store import list_stored, pull, push
from operant.errors import OperantError, RunError, UsageError
from operant.run.inventory import faults
from operant.run.records import Records, difference
from operant.run.run import Run
from operant.store import backend
from operant.store.backend import Store, StoreError
from operant.store.folder import FolderBackend
from operant.store.upload import Uploader
from tests.unit.store.conftest import advance, sessions_of

if TYPE_CHECKING:
    from tests.unit.store.conftest import Made


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def objects(store: Path) -> set[Path]:
    return set(store.rglob("objects/*"))


def pulled(store: Path, to: Path) -> list[Run]:
    (found,) = pull(str(store), root=to)
    return sessions_of(found.path)


def same(first: Path, second: list[Run]) -> bool:
    pairs = zip(sessions_of(first), second, strict=True)
    return all(difference(Records.of(mine), Records.of(theirs)) is None for mine, theirs in pairs)


def test_what_is_pulled_is_the_run(make_run: Made, store: Path, tmp_path: Path) -> None:
    run = make_run()
    sent = push(run, store)
    there = pulled(store, tmp_path / "other")
    assert same(run, there)
    assert there[0].path.parents[1].relative_to(tmp_path / "other") == run.relative_to(tmp_path / "runs")
    assert faults(there[0].path.parents[1]) == []
    assert os.readlink(there[0].checkpoints / "latest") == "000000000030"
    assert sent.files == sum(1 for file in run.rglob("*") if file.is_file() and file.name not in ("lock", "store.json"))


def test_nothing_is_sent_twice(make_run: Made, store: Path) -> None:
    run = make_run(weights=b"x" * 1_000_000)
    assert push(run, store).bytes > 1_000_000
    before = objects(store)
    again = push(run, store)
    assert (again.files, again.bytes, objects(store)) == (0, 0, before)
    advance(sessions_of(run)[0], 40)
    more = push(run, store)
    assert 0 < more.bytes < 20_000
    assert before < objects(store)


def test_of_a_growing_log_the_new_rows_are_sent(make_run: Made, store: Path) -> None:
    run = make_run()
    rows = sessions_of(run)[0].path / "episodes.jsonl"
    with rows.open("a") as file:
        file.write('{"frames": 30}\n' * 200_000)
    assert push(run, store).bytes > 3_000_000
    with rows.open("a") as file:
        file.write('{"frames": 30}\n' * 10 + '{"torn')
    assert push(run, store).bytes < 200_000
    (found,) = pull(str(store), root=store.parent / "other")
    stored = (found.path / "trial_000/session_0/episodes.jsonl").read_bytes()
    assert rows.read_bytes() == stored + b'{"torn'


class Breaks(FolderBackend):
    """Fails for good at the n-th write."""

    def __init__(self, folder: Path, writes: int) -> None:
        super().__init__(folder)
        self.left = writes

    def write(self, key: str, data: bytes) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoreError("broken", place=key, remedy="none")
        super().write(key, data)


def test_a_reader_never_sees_half_of_a_checkpoint(make_run: Made, store: Path, tmp_path: Path) -> None:
    run = make_run(20)
    push(run, store)
    advance(sessions_of(run)[0], 40)
    advance(sessions_of(run)[1], 40)
    for writes in range(100):
        try:
            Uploader(Store(Breaks(store, writes)), run).push()
        except StoreError:
            there = pulled(store, tmp_path / f"after_{writes}")
            for session in there:
                records = Records.of(session)
                frames = records.newest.at.frames
                assert frames in (20, 40)
                assert len(records.metrics) == len(records.episodes) == frames // 10
                assert faults(session.path) == []
        else:
            break
    assert same(run, pulled(store, tmp_path / "last"))
    assert writes > 3


@pytest.mark.slow
def test_a_run_appears_when_all_its_sessions_are_there(make_run: Made, store: Path) -> None:
    run = make_run()
    for writes in range(100):
        try:
            Uploader(Store(Breaks(store, writes)), run).push()
        except StoreError:
            with pytest.raises(UsageError, match="no run is stored there"):
                pull(str(store), root=store.parent / "other")
            assert list_stored(store / "toy" / run.name) == []
        else:
            break
    assert len(pulled(store, store.parent / "other")) == 2


def test_transient_faults_are_retried_and_told(make_run: Made, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Flaky(FolderBackend):
        calls = 0

        def write(self, key: str, data: bytes) -> None:
            Flaky.calls += 1
            if Flaky.calls % 3 == 0:
                raise StoreError("a hiccup", place=key, remedy="none", is_transient=True)
            super().write(key, data)

    slept: list[float] = []
    monkeypatch.setattr(backend.time, "sleep", slept.append)
    lines: list[str] = []
    run = make_run()
    Uploader(Store(Flaky(store), lines.append), run).push()
    assert same(run, pulled(store, store.parent / "other"))
    assert any("a hiccup; attempt 2 of 8 in 0." in line for line in lines)
    monkeypatch.setattr(
        Flaky,
        "write",
        lambda *_: (_ for _ in ()).throw(StoreError("down", place="x", remedy="wait", is_transient=True)),
    )
    slept.clear()
    with pytest.raises(StoreError, match="down"):
        Uploader(Store(Flaky(store)), run, force=True).push()
    assert len(slept) >= 7
    assert max(slept) <= 10.0


def test_a_damaged_object_is_named(make_run: Made, store: Path, tmp_path: Path) -> None:
    run = make_run()
    push(run, store)
    weights = sessions_of(run)[1].checkpoints / "000000000020/weights.bin"
    name = hashlib.sha256(weights.read_bytes()).hexdigest()
    (damaged,) = store.rglob(f"objects/{name}")
    damaged.write_bytes(b"something else")
    with pytest.raises(StoreError) as error:
        pull(str(store), root=tmp_path / "other")
    assert str(damaged) in str(error.value)
    assert "session_1/checkpoints/000000000020/weights.bin" in str(error.value)
    assert not list((tmp_path / "other").rglob("run.json")) or not (tmp_path / "other" / "toy" / run.name).exists()
    (found,) = pull(str(store), root=tmp_path / "other", accept_loss=True)
    kept = [path.name for path in (found.path / "trial_000/session_1/checkpoints").iterdir()]
    assert "000000000020" not in kept
    assert "000000000030" in kept
    push(run, store, force=True)
    assert same(run, pulled(store, tmp_path / "mended"))
    damaged.unlink()
    with pytest.raises(StoreError, match="is missing"):
        pull(str(store), root=tmp_path / "third")


def test_an_interrupted_pull_goes_on(make_run: Made, store: Path, tmp_path: Path) -> None:
    run = make_run(weights=b"w" * 100_000)
    push(run, store)
    (broken,) = store.rglob(f"objects/{hashlib.sha256((run / 'resolved.json').read_bytes()).hexdigest()}")
    hidden = broken.rename(broken.with_name("hidden"))
    with pytest.raises(StoreError):
        pull(str(store), root=tmp_path / "other")
    assert not (tmp_path / "other" / "toy" / run.name).exists()
    hidden.rename(broken)
    (found,) = pull(str(store), root=tmp_path / "other")
    assert found.bytes < 100_000
    assert same(run, sessions_of(found.path))


class TestOwnWork:
    """What is here is never replaced in silence."""

    def test_a_copy_that_stayed_behind_is_updated(self, make_run: Made, store: Path, tmp_path: Path) -> None:
        run = make_run(20)
        push(run, store)
        (copy,) = pull(str(store), root=tmp_path / "other")
        (copy.path / "mine.txt").write_text("kept")
        for session in sessions_of(run):
            advance(session, 50)
        push(run, store)
        (again,) = pull(str(store), root=tmp_path / "other")
        assert again.state == "updated"
        assert same(run, sessions_of(again.path))
        assert (copy.path / "mine.txt").read_text() == "kept"
        (third,) = pull(str(store), root=tmp_path / "other")
        assert third.state == "up to date"

    def test_a_run_that_went_another_way_is_left_alone(self, make_run: Made, store: Path, tmp_path: Path) -> None:
        run = make_run(20)
        push(run, store)
        (copy,) = pull(str(store), root=tmp_path / "other")
        advance(sessions_of(copy.path)[0], 30, b"other weights")
        (found,) = pull(str(store), root=tmp_path / "other")
        assert found.state == "ahead"
        advance(sessions_of(run)[0], 40)
        push(run, store)
        before = (sessions_of(copy.path)[0].path / "metrics.jsonl").read_bytes()
        with pytest.raises(UsageError, match=r"session_0/\S+.* differ") as error:
            pull(str(store), root=tmp_path / "other")
        assert "--force" in str(error.value.remedy)
        assert (sessions_of(copy.path)[0].path / "metrics.jsonl").read_bytes() == before
        (forced,) = pull(str(store), root=tmp_path / "other", force=True)
        assert same(run, sessions_of(forced.path))
        assert forced.set_aside is not None
        assert (forced.set_aside / "trial_000/session_0/metrics.jsonl").read_bytes() == before

    def test_an_older_state_does_not_replace_a_newer_one(self, make_run: Made, store: Path, tmp_path: Path) -> None:
        run = make_run(20)
        push(run, store)
        (copy,) = pull(str(store), root=tmp_path / "other")
        for session in sessions_of(copy.path):
            advance(session, 40)
        push(copy.path, store)
        with pytest.raises(RunError, match="a newer state of trial_000/session_0 is stored there, at frame 40"):
            push(run, store)
        push(run, store, force=True)

    def test_a_namesake_is_refused(self, make_run: Made, store: Path, tmp_path: Path) -> None:
        run = make_run()
        push(run, store)
        other = make_run(out=tmp_path / "elsewhere" / run.name)
        with pytest.raises(RunError, match="another run of this name is stored there"):
            push(other, store)

    def test_another_thing_in_the_way(self, make_run: Made, store: Path, tmp_path: Path) -> None:
        push(make_run(), store)
        (tmp_path / "taken").mkdir()
        (tmp_path / "taken" / "thesis.tex").write_text("x")
        with pytest.raises(UsageError, match="something else is in the way"):
            pull(str(store), out=tmp_path / "taken", force=True)


def test_nothing_is_deleted_unless_told(make_run: Made, store: Path, tmp_path: Path) -> None:
    run = make_run(20)
    (run / "notes.txt").write_text("a note")
    push(run, store)
    first = objects(store)
    (run / "notes.txt").unlink()
    for session in sessions_of(run):
        advance(session, 60)
    push(run, store)
    assert first < objects(store)
    (found,) = pull(str(store), root=tmp_path / "other")
    assert (found.path / "notes.txt").read_text() == "a note"
    assert (found.path / "trial_000/session_0/checkpoints/000000000010").is_dir()
    sent = push(run, store, delete=True)
    assert sent.deleted > 0
    (other,) = pull(str(store), root=tmp_path / "third")
    assert not (other.path / "notes.txt").exists()
    assert same(run, sessions_of(other.path))
    assert sorted(p.name for p in (other.path / "trial_000/session_0/checkpoints").glob("0*")) == [
        "000000000050",
        "000000000060",
    ]


@pytest.mark.slow
def test_a_checkpoint_that_is_pruned_meanwhile(make_run: Made, store: Path, tmp_path: Path) -> None:
    run = make_run(20)

    class Prunes(FolderBackend):
        def write(self, key: str, data: bytes) -> None:
            shutil.rmtree(sessions_of(run)[0].checkpoints / "000000000010", ignore_errors=True)
            super().write(key, data)

    Uploader(Store(Prunes(store)), run).push()
    there = pulled(store, tmp_path / "other")
    assert all(faults(session.path) == [] for session in there)
    assert Records.of(there[0]).newest.at.frames == 20


def test_a_damaged_local_checkpoint_is_not_sent(make_run: Made, store: Path, tmp_path: Path) -> None:
    run = make_run()
    (sessions_of(run)[0].checkpoints / "000000000030/weights.bin").write_bytes(b"rot")
    sent = push(run, store)
    assert len(sent.damaged) == 1
    assert Records.of(pulled(store, tmp_path / "other")[0]).newest.at.frames == 20


def test_a_list_of_runs(make_run: Made, store: Path) -> None:
    run = make_run(100)
    push(run, store)
    (row,) = list_stored(str(store))
    assert (row.run, row.state, row.sessions_done, row.frames) == (f"toy/{run.name}", "done", 2, 100)
    assert row.score is not None
    assert row.score.point == 100.5
    (same_row,) = list_stored(str(store / "toy" / run.name))
    assert same_row.frames == 100


@pytest.mark.slow
def test_which_of_several(make_run: Made, store: Path, tmp_path: Path) -> None:
    first = make_run(10)
    second = make_run(10, out=tmp_path / "runs" / "toy" / "29990101-000000")
    push(first, store)
    push(second, store)
    (newest,) = pull(str(store), root=tmp_path / "other")
    assert newest.path.name == second.name
    assert len(pull(str(store), "t*", root=tmp_path / "other")) == 2
    (one,) = pull(str(store / "toy" / first.name), root=tmp_path / "third")
    assert one.path == tmp_path / "third" / "toy" / first.name
    with pytest.raises(UsageError, match="no run there fits 'dqn_\\*'"):
        pull(str(store), "dqn_*", root=tmp_path / "other")
    (store / "zoo").mkdir()
    shutil.copytree(store / "toy" / first.name, store / "zoo" / first.name)
    with pytest.raises(UsageError, match="3 runs are stored there"):
        pull(str(store), root=tmp_path / "other")


def test_one_session_of_a_run(make_run: Made, store: Path) -> None:
    run = make_run()
    push(run / "trial_000" / "session_1", store)
    (found,) = pull(str(store), root=store.parent / "other")
    assert [path.name for path in (found.path / "trial_000").iterdir()] == ["session_1"]


def test_what_is_no_experiment_is_refused(tmp_path: Path, store: Path) -> None:
    (tmp_path / "alone" / "session_0").mkdir(parents=True)
    with pytest.raises(OperantError):
        push(tmp_path / "alone", store)


def test_an_address_with_credentials_is_refused_without_them() -> None:
    with pytest.raises(UsageError, match="must not hold credentials") as error:
        pull("s3://key:hush@bucket/x")
    assert "hush" not in str(error.value)


def test_a_database_that_is_in_use_comes_whole(make_run: Made, store: Path, tmp_path: Path) -> None:
    run = make_run()
    with closing(sqlite3.connect(run / "search.db")) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE jobs (number INTEGER)")
        writer.execute("INSERT INTO jobs VALUES (7)")
        writer.commit()
        assert (run / "search.db-wal").stat().st_size > 0, "the row stands beside the database"
        push(run, store)
        assert push(run, store).bytes == 0
    (found,) = pull(str(store), root=tmp_path / "other")
    with closing(sqlite3.connect(found.path / "search.db")) as reader:
        assert reader.execute("SELECT number FROM jobs").fetchall() == [(7,)]
    assert not list(found.path.glob("search.db-*"))
