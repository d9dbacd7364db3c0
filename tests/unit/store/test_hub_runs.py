"""Runs on the hub: its own client against a server that speaks its protocol over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operant.api.cards import card_text
from operant.api.store import list_stored, pull, push
from operant.run.records import Records, difference
from operant.store import backend
from operant.store.backend import StoreError
from tests.unit.store.conftest import advance, sessions_of
from tests.unit.store.fake_hub import TOKEN, Hub

if TYPE_CHECKING:
    from tests.unit.store.conftest import Made


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    constants = pytest.importorskip("huggingface_hub.constants")
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield server
    server.shutdown()
    server.server_close()


def same(run: Path, copy: Path) -> bool:
    pairs = zip(sessions_of(run), sessions_of(copy), strict=True)
    return all(difference(Records.of(mine), Records.of(theirs)) is None for mine, theirs in pairs)


def test_development_then_graduation(make_run: Made, hub: Hub, tmp_path: Path) -> None:
    run = make_run(20)
    push(run, "hf://me/dev")
    assert len(hub.commits) == 1
    assert f"toy/{run.name}/trial_000/session_0/checkpoints/000000000020/weights.bin" in hub.repos["me/dev"]
    (found,) = pull("hf://me/dev", "t*", root=tmp_path / "other")
    assert same(run, found.path)
    for session in sessions_of(run):
        advance(session, 100)
    push(run, "hf://me/dev")
    weights = f"toy/{run.name}/trial_000/session_0/checkpoints/000000000020/weights.bin"
    assert weights in hub.commits[0]
    assert weights not in hub.commits[1]
    assert push(run, "hf://me/dev").files == 0
    assert len(hub.commits) == 2
    push(f"hf://me/dev/toy/{run.name}", "hf://lab/public/best")
    (row,) = list_stored("hf://lab/public/best")
    assert (row.run, row.state, row.frames) == (f"toy/{run.name}", "done", 100)
    (graduated,) = pull("hf://lab/public/best", root=tmp_path / "third")
    assert same(run, graduated.path)
    assert "hf://lab/public/best/toy" in hub.repos["lab/public"]["README.md"].decode()


def test_a_card_that_a_person_wrote_stays(make_run: Made, hub: Hub) -> None:
    hub.repos["me/dev"] = {"README.md": b"my own words"}
    run = make_run(10)
    push(run, "hf://me/dev")
    assert hub.repos["me/dev"]["README.md"] == b"my own words"
    assert b"## Load the policy" in hub.repos["me/dev"][f"toy/{run.name}/README.md"]


def test_a_busy_hub_is_asked_again(make_run: Made, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "FIRST_DELAY", 0.01)
    hub.fail_next_commit = 1
    lines: list[str] = []
    push(make_run(10), "hf://me/dev", report=lines.append)
    assert len(hub.commits) == 1


def test_a_wrong_token_is_one_clear_line(make_run: Made, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong_one")
    with pytest.raises(StoreError, match="access was refused") as error:
        push(make_run(10), "hf://me/dev")
    assert "HF_TOKEN" in str(error.value.remedy)
    assert "hf_wrong_one" not in str(error.value)
    assert hub.repos == {}


def test_the_card_says_what_was_trained(make_run: Made) -> None:
    text = card_text(make_run(100), "hf://me/dev/toy/1")
    assert text.startswith("---\nlibrary_name: operant\n")
    assert "ppo on Toy-v0" in text
    assert "| trial_000 | done | 2 | 100 | 100.5 [100.0, 101.0] | last evaluation |" in text
    assert 'operant.pull("hf://me/dev/toy/1")' in text
    assert "name: toy" in text
