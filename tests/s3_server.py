"""A real S3 server for tests: SeaweedFS from its package, on ports of its own, with one identity."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY, SECRET = "operant-tests", "not-a-secret"
START_SECONDS = 60


@dataclass
class S3Server:
    """Where it listens, a client that may do everything, and the process, which can be killed and started again."""

    url: str
    client: Any
    command: list[str]
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until a file can be written."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)
        _wait(self.client, self.process, self.folder / "log")

    def kill(self) -> None:
        """SIGKILL; what it has stored stays."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def environment(self) -> dict[str, str]:
        """What a program's environment needs to reach it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def weed() -> str | None:
    """The server's program, beside this Python or on the path."""
    beside = Path(sys.executable).parent / "weed"
    return str(beside) if beside.is_file() else shutil.which("weed")


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Start one that keeps its files in `folder`; it is killed at the end."""
    import boto3

    identity = {"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    config = folder / "identities.json"
    config.write_text(json.dumps({"identities": [identity]}))
    names = [f"{part}.{kind}" for part in ("master", "volume", "filer", "s3") for kind in ("port", "port.grpc")]
    ports = dict(zip(names, _free_ports(len(names)), strict=True))
    command = [str(weed()), "server", "-filer", "-s3", f"-dir={folder}", f"-s3.config={config}"]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-volume.max=64"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += [f"-{name}={port}" for name, port in ports.items()]
    url = f"http://127.0.0.1:{ports['s3.port']}"
    client = boto3.client(
        "s3", endpoint_url=url, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1"
    )
    server = S3Server(url, client, command, folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait(client: Any, server: subprocess.Popen[bytes], log: Path) -> None:
    """Until a file can be written."""
    from botocore.exceptions import BotoCoreError, ClientError

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with suppress(client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou):
                client.create_bucket(Bucket="ready")
            client.put_object(Bucket="ready", Key="file", Body=b"x")
            return
        except (BotoCoreError, ClientError) as problem:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the S3 server did not start: {log.read_text()[-2000:]}") from problem
            time.sleep(0.3)
