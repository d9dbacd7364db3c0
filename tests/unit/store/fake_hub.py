"""A server that speaks as much of the hub's protocol as its own client needs to commit, list and download files."""

from __future__ import annotations

import base64
import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_tests_only"


class Hub(ThreadingHTTPServer):
    """Repositories as mappings from path to content; `commits` holds the paths of each commit."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[str, dict[str, bytes]] = {}
        self.commits: list[list[str]] = []
        self.fail_next_commit = 0
        self.cards: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer(401, {"error": "Invalid credentials"})
        if path == "/api/validate-yaml":
            self.server.cards.append(json.loads(body)["content"])
            return self._answer(200, {"errors": [], "warnings": []})
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if name in self.server.repos:
                return self._answer(409, {"error": "exists", "url": f"{self.server.url}/{name}"})
            self.server.repos[name] = {}
            return self._answer(200, {"url": f"{self.server.url}/{name}"})
        name, action = "/".join(path.split("/")[3:5]), path.split("/")[5]
        if action == "preupload":
            files = [
                {"path": each["path"], "uploadMode": "regular", "shouldIgnore": False}
                for each in json.loads(body)["files"]
            ]
            return self._answer(200, {"files": files})
        return self._commit(name, [json.loads(line) for line in body.splitlines()])

    def _commit(self, name: str, lines: list[dict]) -> None:
        if self.server.fail_next_commit:
            self.server.fail_next_commit -= 1
            return self._answer(503, {"error": "busy"})
        repo = self.server.repos[name]
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                repo[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                del repo[value["path"]]
        self.server.commits.append([line["value"]["path"] for line in lines if line["key"] != "header"])
        oid = hashlib.sha1(str(len(self.server.commits)).encode()).hexdigest()
        return self._answer(
            200, {"commitOid": oid, "commitUrl": f"{self.server.url}/{name}/commit/{oid}", "hookOutput": ""}
        )

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        words = unquote(parts.path).strip("/").split("/")
        if words[0] == "api":
            return self._tree(
                "/".join(words[2:4]), "/".join(words[6:]), "True" in parse_qs(parts.query).get("recursive", [])
            )
        return self._file("/".join(words[:2]), "/".join(words[4:]), with_body=True)

    def do_HEAD(self) -> None:
        words = unquote(urlsplit(self.path).path).strip("/").split("/")
        self._file("/".join(words[:2]), "/".join(words[4:]), with_body=False)

    def _tree(self, name: str, folder: str, recursive: bool) -> None:
        if name not in self.server.repos:
            return self._answer(404, {"error": "no"}, "RepoNotFound")
        prefix = f"{folder}/" if folder else ""
        inside = {path: data for path, data in self.server.repos[name].items() if path.startswith(prefix)}
        if not inside:
            return self._answer(404, {"error": "no"}, "EntryNotFound")
        found, folders = [], set()
        for path, data in inside.items():
            if "/" in path.removeprefix(prefix):
                folders.add(prefix + path.removeprefix(prefix).split("/")[0])
            if recursive or "/" not in path.removeprefix(prefix):
                found.append({"type": "file", "path": path, "size": len(data), "oid": "a" * 40})
        return self._answer(
            200, [*found, *({"type": "directory", "path": f, "oid": "b" * 40} for f in sorted(folders))]
        )

    def _file(self, name: str, path: str, with_body: bool) -> None:
        data = self.server.repos.get(name, {}).get(path)
        if data is None:
            return self._answer(404, {"error": "no"}, "EntryNotFound" if name in self.server.repos else "RepoNotFound")
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", hashlib.sha1(str(len(self.server.commits)).encode()).hexdigest())
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if with_body:
            self.wfile.write(data)
        return None

    def _answer(self, status: int, content: object, code: str | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
