"""Where runs are stored: `s3://BUCKET/PREFIX`, `hf://OWNER/REPO[/FOLDER]`, `file:///FOLDER` or a plain path."""

from __future__ import annotations

import warnings
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from operant.errors import RunWarning, UsageError
from operant.run.layout import EXPERIMENT_FILE
from operant.store.backend import Backend, Report, Store, StoreError
from operant.store.manifest import MANIFEST

FORMS = "s3://BUCKET/PREFIX, hf://OWNER/REPO, or a local folder"


def is_url(place: str) -> bool:
    """Whether a place is named by a URL; anything else is a path or the name of a run."""
    return "://" in place


def is_stored(place: str) -> bool:
    """Whether a place is a stored run: one that a URL names, or a folder that a push has made."""
    folder = Path(place)
    return is_url(place) or ((folder / MANIFEST).is_file() and not (folder / EXPERIMENT_FILE).exists())


def open_store(url: str | Path, report: Report = lambda line: None) -> Store:
    """The store at an address; nothing is asked of it yet."""
    return Store(_open(str(url)), report)


def check_sync(url: str | None) -> None:
    """`StoreError` before anything is trained if `meta.sync` cannot work; a server that is only away may come back."""
    if url is None:
        return
    try:
        open_store(url).folders("")
    except StoreError as problem:
        if not problem.is_transient:
            raise
        warnings.warn(
            f"{problem.place}: {problem.cause}; training starts, and is stored later", RunWarning, stacklevel=2
        )


def _open(url: str) -> Backend:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "file":
        from operant.store.folder import FolderBackend

        return FolderBackend(Path(unquote(rest) if separator else url).expanduser().absolute())
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise UsageError(
            "an address must not hold credentials",
            place=f"{scheme}://...@{parts.netloc.rpartition('@')[2]}{parts.path}",
            remedy="leave them out; they come from AWS_PROFILE, AWS_ACCESS_KEY_ID or HF_TOKEN",
        )
    if scheme == "s3" and parts.netloc:
        return _open_s3(url)
    if scheme == "hf" and len([part for part in f"{parts.netloc}{parts.path}".split("/") if part]) > 1:
        from operant.store.hub import HubBackend

        return HubBackend(url)
    raise UsageError("this is no address of a store", place=url, remedy=f"one of: {FORMS}")


def _open_s3(url: str) -> Backend:
    parts = urlsplit(url)
    query = parse_qs(parts.query, keep_blank_values=True)
    endpoint = query.pop("endpoint", [""])[0]
    if query:
        raise UsageError(f"there is no option {next(iter(query))} of an address", place=url, remedy="?endpoint=URL")
    from operant.store.s3 import S3Backend

    return S3Backend(url, parts.netloc, parts.path.strip("/"), endpoint or None)
