"""Files at an address: copied once to the user's cache, then read from there.

`s3://BUCKET/KEY` is any S3 server that boto3 is configured for (AWS_ENDPOINT_URL, credentials and so on);
`hf://datasets/OWNER/NAME[@REVISION]/FILE` is a dataset repository of the Hugging Face hub, kept in the hub's own cache.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.install import install_extra
from operant.store.cache import cache_folder

S3, HUB = "s3://", "hf://datasets/"
ABSENT = ("404", "NoSuchKey", "NotFound")


def is_address(place: str) -> bool:
    """Whether a place is no local one."""
    return "://" in place


def local_copy(address: str) -> Path | None:
    """The file at an address as a local file; None where the server says that there is none."""
    if address.startswith(S3):
        return _from_s3(address)
    if address.startswith(HUB):
        return _from_hub(address)
    remedy = f"a local folder, {S3}BUCKET/FOLDER or {HUB}OWNER/NAME"
    raise UsageError(f"{address} is no address that files are read from", remedy=remedy)


def _from_s3(address: str) -> Path | None:
    """A copy is kept by the file's fingerprint, so a file that was changed there is copied anew."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ModuleNotFoundError as missing:
        raise _needs("boto3", address) from missing
    bucket, _, key = address.removeprefix(S3).partition("/")
    try:
        client = boto3.Session().client("s3")
        fingerprint = client.head_object(Bucket=bucket, Key=key)["ETag"].strip('"')
        copy = cache_folder("data") / "s3" / bucket / fingerprint / Path(key).name
        if not copy.is_file():
            _download(client, bucket, key, copy)
        return copy
    except ClientError as problem:
        if problem.response["Error"]["Code"] in ABSENT:
            return None
        raise _unreadable(address, problem) from problem
    except BotoCoreError as problem:
        raise _unreadable(address, problem) from problem


def _download(client: Any, bucket: str, key: str, copy: Path) -> None:
    """Whole or not at all, also where several processes do it at once."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=copy.parent) as folder:
        part = Path(folder) / copy.name
        client.download_file(bucket, key, str(part))
        os.replace(part, copy)


def _from_hub(address: str) -> Path | None:
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import (
            EntryNotFoundError,
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )
    except ModuleNotFoundError as missing:
        raise _needs("huggingface-hub", address) from missing
    owner, name, *file = address.removeprefix(HUB).split("/")
    name, _, revision = name.partition("@")
    try:
        found = hf_hub_download(f"{owner}/{name}", "/".join(file), repo_type="dataset", revision=revision or None)
    except LocalEntryNotFoundError as problem:
        raise _unreadable(address, problem) from problem
    except EntryNotFoundError:
        return None
    except (HfHubHTTPError, HFValidationError, OSError) as problem:
        raise _unreadable(address, problem) from problem
    return Path(found)


def _needs(package: str, address: str) -> UsageError:
    return UsageError(
        f"{address} needs the package {package}, which is not installed",
        remedy=install_extra("cloud"),
    )


def _unreadable(address: str, problem: Exception) -> UsageError:
    kept = "AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" if address.startswith(S3) else "HF_TOKEN"
    cause = str(problem).strip().splitlines()[0]
    return UsageError(f"cannot be read: {cause}", place=address, remedy=f"check the address, the network and {kept}")
