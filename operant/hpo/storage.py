"""The database of a study: a file beside the trials, or a server by its address. Passwords are never shown or kept."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.errors import RunError, UsageError
from operant.install import missing_package
from operant.run.layout import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

DATABASE_FILE = "search.db"
STORAGE_VARIABLE = "OPERANT_STORAGE"
BUSY_SECONDS = 60
CONNECT_SECONDS = 10


def require_optuna() -> None:
    """`UsageError` with the install command where Optuna is absent."""
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "optuna", "a search", "search") from None


def database_url(experiment: Path, storage: str | None) -> str:
    """The address to open: the file in the experiment's folder unless `storage` names a server."""
    return with_driver(storage or f"sqlite:///{(experiment / DATABASE_FILE).absolute()}")


def with_driver(url: str) -> str:
    """The address with the driver that the extra installs, where it names none: SQLAlchemy would take psycopg 3."""
    scheme, mark, rest = url.partition("://")
    return f"postgresql+psycopg2{mark}{rest}" if scheme in ("postgres", "postgresql") else url


def given_storage(storage: str | None, recorded: str | None, experiment: str) -> str | None:
    """The address of the server, with its password: as given, from the environment, or as recorded without one."""
    storage = storage or os.environ.get(STORAGE_VARIABLE)
    if storage is not None and recorded is not None and without_password(storage) != recorded:
        raise UsageError(
            f"this search is kept at {recorded}, and another storage was given: {without_password(storage)}",
            place=experiment,
            remedy="name the same storage, with its password where it needs one",
        )
    return storage or recorded


def without_password(url: str) -> str:
    """The address as it may be printed and written down; `UsageError` for text that is none."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)._replace(password=None).set(query={}).render_as_string()
    except ArgumentError:
        raise UsageError(
            "the storage is not an address of a database",
            remedy="--storage postgresql://USER@HOST/DATABASE    (or leave it out: a file in the experiment's folder)",
        ) from None


def connect(url: str) -> Engine:
    """An engine that has answered once; `RunError` in one line where the database cannot be reached."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

    address, password = without_password(url), make_url(url).password
    waits = {"timeout": BUSY_SECONDS} if url.startswith("sqlite") else {"connect_timeout": CONNECT_SECONDS}
    try:
        engine = create_engine(with_driver(url), connect_args=waits)
        if url.startswith("sqlite"):
            event.listen(engine, "connect", _write_ahead)
        with unreachable(address, str(password or "")), engine.connect():
            return engine
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "psycopg2", "a search in a PostgreSQL database", "search") from None
    except (NoSuchModuleError, SQLAlchemyError) as fault:
        raise UsageError(
            f"there is no driver for {address} ({type(fault).__name__})", remedy="--storage postgresql://..."
        ) from None


@contextmanager
def unreachable(address: str, password: str = "") -> Iterator[None]:
    """Turns what a database driver raises into one line, without the password that its message may hold."""
    from sqlalchemy.exc import DBAPIError, IntegrityError

    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as fault:
        lines = [line.strip() for line in str(fault.orig).splitlines() if line.strip()]
        said = lines[0] if lines else type(fault.orig).__name__
        said = said.replace(password, "***") if password else said
        raise RunError(
            f"the database of the search does not answer: {said}",
            place=address if not address.startswith("sqlite") else shown(address.removeprefix("sqlite:///")),
            remedy="start it, or check the address and the password; nothing of the search is lost",
        ) from None


def _write_ahead(connection: Any, record: object) -> None:
    """Readers do not wait for writers, and a transaction that was committed outlives a kill of the process."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
