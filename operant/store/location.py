"""Where runs are stored: `s3://BUCKET/PREFIX`, `hf://OWNER/REPO[/FOLDER]`, `file:///FOLDER` or a plain path."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from operant.errors import UsageError
from operant.store.backend import Backend, Report, Store

FORMS = "s3://BUCKET/PREFIX, hf://OWNER/REPO, or a local folder"


def is_url(place: str) -> bool:
    """Whether a place is named by a URL; anything else is a path or the name of a run."""
    return "://" in place


def check_url(url: str) -> None:
    """`UsageError` for an address that is no store, before anything is asked of it."""
    _open(url, connect=False)


def open_store(url: str | Path, report: Report = lambda line: None) -> Store:
    """The store at an address; nothing is asked of it yet."""
    backend = _open(str(url), connect=True)
    assert backend is not None, "only a check opens nothing"
    return Store(backend, report)


def _open(url: str, connect: bool) -> Backend | None:
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
        return _open_s3(url, connect)
    if scheme == "hf" and len([part for part in f"{parts.netloc}{parts.path}".split("/") if part]) > 1:
        from operant.store.hub import HubBackend

        return HubBackend(url) if connect else None
    raise UsageError("this is no address of a store", place=url, remedy=f"one of: {FORMS}")


def _open_s3(url: str, connect: bool) -> Backend | None:
    parts = urlsplit(url)
    query = parse_qs(parts.query, keep_blank_values=True)
    endpoint = query.pop("endpoint", [""])[0]
    if query:
        raise UsageError(f"there is no option {next(iter(query))} of an address", place=url, remedy="?endpoint=URL")
    if not connect:
        return None
    from operant.store.s3 import S3Backend

    return S3Backend(url, parts.netloc, parts.path.strip("/"), endpoint or None)
