"""A store in a bucket of S3, or of any server that speaks its protocol.

Credentials, profile, region and endpoint come from where boto3 finds them; `?endpoint=URL` names a server in the URL.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from operant.install import missing_package
from operant.store.backend import StoreError

ABSENT = {"404", "NoSuchKey", "NotFound"}
LATER = {"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown", "Throttling", "ThrottlingException"}
REFUSED = {"403", "AccessDenied", "ExpiredToken", "Forbidden", "InvalidAccessKeyId", "InvalidToken"}
WRONG_SECRET = {"SignatureDoesNotMatch", "AuthorizationHeaderMalformed"}
CREDENTIALS = "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
DELETED_AT_ONCE = 1000


class S3Backend:
    """Objects of a bucket below a prefix (final)."""

    plain = False

    def __init__(self, url: str, bucket: str, prefix: str, endpoint: str | None) -> None:
        self.url = url
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = _client(url, endpoint)

    def read(self, key: str) -> bytes | None:
        """The object, or None where there is none."""
        with self._faults(key) as absent:
            return self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)["Body"].read()
        assert absent, "every other fault is raised"
        return None

    def write(self, key: str, data: bytes) -> None:
        """Put an object, over an earlier one; the server compares its hash before it keeps it."""
        proof = base64.b64encode(hashlib.sha256(data).digest()).decode()
        with self._faults(key):
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=data, ChecksumSHA256=proof)

    def sizes(self, folder: str) -> dict[str, int]:
        """The objects below a folder, by their name in it, with their sizes."""
        prefix = self._prefix + f"{folder.strip('/')}/".lstrip("/")
        return {
            item["Key"].removeprefix(prefix): item["Size"]
            for page in self._pages(folder, Prefix=prefix)
            for item in page.get("Contents", [])
        }

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        prefix = self._prefix + f"{folder.strip('/')}/".lstrip("/")
        pages = self._pages(folder, Prefix=prefix, Delimiter="/")
        return [item["Prefix"].removeprefix(prefix).rstrip("/") for page in pages for item in page["CommonPrefixes"]]

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are not there are no error."""
        for start in range(0, len(keys), DELETED_AT_ONCE):
            doomed = [{"Key": self._prefix + key} for key in keys[start : start + DELETED_AT_ONCE]]
            with self._faults(keys[start]):
                self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": doomed, "Quiet": True})

    def copy_to(self, key: str, target: Path) -> bool:
        """Not of this store: its files are made of parts."""
        raise NotImplementedError

    def commit(self, files: Mapping[str, Path | bytes], doomed: Sequence[str], message: str) -> None:
        """Not of this store: its manifests publish."""
        raise NotImplementedError

    def _pages(self, folder: str, **query: str) -> list[dict[str, Any]]:
        pages: list[dict[str, Any]] = []
        with self._faults(folder):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, **query):
                pages.append({"CommonPrefixes": [], **page})
        return pages

    @contextmanager
    def _faults(self, key: str) -> Iterator[list[bool]]:
        """Turns what boto3 raises into `StoreError`; an object that is not there is no fault."""
        from botocore.exceptions import BotoCoreError, ClientError
        from urllib3.exceptions import HTTPError

        absent: list[bool] = []
        try:
            yield absent
        except ClientError as problem:
            if problem.response["Error"]["Code"] not in ABSENT:
                raise self._of_response(problem, key) from problem
            absent.append(True)
        except (BotoCoreError, HTTPError, OSError) as problem:
            raise self._of_connection(problem, key) from problem

    def _of_response(self, problem: Any, key: str) -> StoreError:
        """What the server answered."""
        code = str(problem.response["Error"]["Code"])
        status = int(problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        place = f"s3://{self._bucket}/{self._prefix}{key}"
        if code == "NoSuchBucket":
            return StoreError(
                f"there is no bucket {self._bucket}",
                place=self.url,
                remedy=f"aws s3 mb s3://{self._bucket}, or another address",
            )
        if code in WRONG_SECRET:
            return StoreError(f"the credentials are wrong ({code})", place=self.url, remedy=f"check {CREDENTIALS}")
        if code in REFUSED or status in (401, 403):
            remedy = f"check {CREDENTIALS}, and that they may list, read and write there"
            return StoreError(f"access was refused ({code})", place=self.url, remedy=remedy)
        is_transient = code in LATER or status >= 500 or status == 429
        remedy = "the same command continues where it stopped" if is_transient else "check the address"
        return StoreError(f"the server answered {code}", place=place, remedy=remedy, is_transient=is_transient)

    def _of_connection(self, problem: Exception, key: str) -> StoreError:
        """What happened on the way there."""
        from botocore import exceptions as known

        if isinstance(problem, known.NoCredentialsError | known.PartialCredentialsError):
            return StoreError("there are no credentials for S3", place=self.url, remedy=f"set {CREDENTIALS}")
        ours = (known.HTTPClientError, known.IncompleteReadError, known.ConnectionError)
        cause = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
        if isinstance(problem, known.BotoCoreError) and not isinstance(problem, ours):
            return StoreError(cause, place=self.url, remedy=f"check the address and {CREDENTIALS}")
        return StoreError(
            f"the server cannot be reached: {cause}",
            place=self.url,
            remedy="check the network and AWS_ENDPOINT_URL_S3; the same command continues where it stopped",
            is_transient=True,
        )


def _client(url: str, endpoint: str | None) -> Any:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ModuleNotFoundError as missing:
        raise missing_package("boto3", url, "cloud") from missing
    # The retries are ours: they are told, and jittered the same way for every store.
    config = Config(
        connect_timeout=5,
        read_timeout=60,
        retries={"total_max_attempts": 1},
        max_pool_connections=16,
        # What is read is compared with our own hashes, which say more than a checksum of the transfer.
        response_checksum_validation="when_required",
    )
    try:
        return boto3.Session().client("s3", endpoint_url=endpoint, config=config)
    except (BotoCoreError, ValueError) as problem:
        cause = str(problem).strip().splitlines()[0]
        remedy = "check AWS_PROFILE, AWS_DEFAULT_REGION and AWS_ENDPOINT_URL_S3"
        raise StoreError(cause, place=url, remedy=remedy) from problem
