"""A store in a repository of the Hugging Face hub: plain files under their own names, published by commits.

`hf://OWNER/REPO[@REVISION][/FOLDER]` is a model repository, `hf://datasets/OWNER/REPO[/FOLDER]` one for data. The token
comes from HF_TOKEN or the hub's login.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from operant.install import missing_package
from operant.store.backend import StoreError

KINDS = {"datasets": "dataset", "models": "model"}
DEFAULT_REVISION = "main"


class HubBackend:
    """Files of a repository below a folder (final). A repository that is not there is empty; a commit makes it."""

    plain = True

    def __init__(self, url: str) -> None:
        self.url = url
        words = [word for word in url.partition("://")[2].split("/") if word]
        self._type = KINDS[words.pop(0)] if words[0] in KINDS else "model"
        owner, name, *folder = words
        name, _, revision = name.partition("@")
        self.repo = f"{owner}/{name}"
        self._revision = revision or DEFAULT_REVISION
        self._prefix = "".join(f"{word}/" for word in folder)
        try:
            from huggingface_hub import HfApi, constants
        except ModuleNotFoundError as missing:
            raise missing_package("huggingface_hub", url, "cloud") from missing
        self._api: Any = HfApi(endpoint=constants.ENDPOINT)

    def read(self, key: str) -> bytes | None:
        """The file, or None where there is none."""
        found = self._download(key)
        return None if found is None else found.read_bytes()

    def copy_to(self, key: str, target: Path) -> bool:
        """Put the file into a local one; False where there is none. What was begun is continued by the hub's client."""
        found = self._download(key)
        if found is not None:
            shutil.copyfile(found, target)
        return found is not None

    def write(self, key: str, data: bytes) -> None:
        """Put one file, as a commit of its own."""
        self.commit({key: data}, [], f"operant: {key}")

    def sizes(self, folder: str) -> dict[str, int]:
        """The files below a folder, by their name in it, with their sizes."""
        prefix = self._prefix + f"{folder.strip('/')}/".lstrip("/")
        return {
            each.path.removeprefix(prefix): each.size
            for each in self._tree(prefix, recursive=True)
            if hasattr(each, "size")
        }

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        prefix = self._prefix + f"{folder.strip('/')}/".lstrip("/")
        return [Path(each.path).name for each in self._tree(prefix, recursive=False) if not hasattr(each, "size")]

    def delete(self, keys: Sequence[str]) -> None:
        """Remove files, as one commit."""
        self.commit({}, keys, "operant: remove what is no longer kept")

    def commit(self, files: Mapping[str, Path | bytes], doomed: Sequence[str], message: str) -> None:
        """Put and remove files, all at once; a repository that is not there is made, as a private one."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        added = [CommitOperationAdd(self._path(key), content) for key, content in files.items()]
        removed = [CommitOperationDelete(self._path(key)) for key in doomed]
        with self._faults():
            self._api.create_repo(self.repo, repo_type=self._type, exist_ok=True, private=True)
            self._api.create_commit(
                self.repo,
                [*added, *removed],
                commit_message=message,
                repo_type=self._type,
                revision=self._revision,
            )

    def _path(self, key: str) -> str:
        """A key that begins with a slash is of the repository, not of the folder in it."""
        return key[1:] if key.startswith("/") else self._prefix + key

    def _download(self, key: str) -> Path | None:
        with self._faults(may_be_absent=True):
            found = self._api.hf_hub_download(self.repo, self._path(key), repo_type=self._type, revision=self._revision)
            return Path(found)
        return None

    def _tree(self, prefix: str, *, recursive: bool) -> list[Any]:
        with self._faults(may_be_absent=True):
            return list(
                self._api.list_repo_tree(
                    self.repo,
                    prefix.rstrip("/") or None,
                    recursive=recursive,
                    repo_type=self._type,
                    revision=self._revision,
                )
            )
        return []

    @contextmanager
    def _faults(self, *, may_be_absent: bool = False) -> Iterator[None]:
        """Turns what the hub's client raises into `StoreError`; for readers, what is not there is no fault."""
        from huggingface_hub import errors

        absent = (errors.RemoteEntryNotFoundError, errors.RepositoryNotFoundError, errors.RevisionNotFoundError)
        try:
            yield
        except errors.HfHubHTTPError as problem:
            status = problem.response.status_code
            if not (may_be_absent and isinstance(problem, absent) and status == 404):
                raise self._of_response(problem, status) from problem
        except (errors.HFValidationError, errors.HfUriError) as problem:
            cause = str(problem).splitlines()[0]
            raise StoreError(cause, place=self.url, remedy="hf://OWNER/REPO[/FOLDER]") from problem
        except (errors.LocalEntryNotFoundError, errors.HTTPError, OSError) as problem:  # pyright: ignore[reportPrivateImportUsage]
            raise self._unreachable(problem) from problem

    def _of_response(self, problem: Exception, status: int) -> StoreError:
        cause = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        if status in (401, 403):
            return StoreError(
                f"access was refused ({status})",
                place=self.url,
                remedy="set HF_TOKEN to a token that may read and write there, or `hf auth login`",
            )
        is_transient = status >= 500 or status == 429
        remedy = "the same command continues where it stopped" if is_transient else "check the address and HF_TOKEN"
        return StoreError(cause, place=self.url, remedy=remedy, is_transient=is_transient)

    def _unreachable(self, problem: Exception) -> StoreError:
        cause = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        return StoreError(
            f"the hub cannot be reached: {cause}",
            place=self.url,
            remedy="check the network and HF_ENDPOINT; the same command continues where it stopped",
            is_transient=True,
        )
