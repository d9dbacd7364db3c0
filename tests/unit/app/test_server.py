from __future__ import annotations

import pytest

from operant.app import server
from operant.errors import UsageError
from operant.install import install_extra


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == "uvicorn" else name)
    with pytest.raises(UsageError, match="the app needs uvicorn, which is not installed") as told:
        server.check_packages()
    assert told.value.remedy == install_extra("app")


def test_a_free_port_is_found_and_one_that_is_taken_is_refused() -> None:
    listening = server.listen(0)
    with pytest.raises(UsageError, match="is in use"):
        server.listen(listening.port)
    listening.socket.close()
