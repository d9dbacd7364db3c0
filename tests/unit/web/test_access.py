"""Who may ask: names, origins, keys, and where a server may listen without one."""

from __future__ import annotations

import pytest

from operant.errors import UsageError
from operant.web.access import Access, RequestError, is_loopback


def status(access: Access, path: str = "/v1/models", **headers: str) -> int:
    """What a request with these headers comes to; 200 where it may be answered."""
    named = {name.replace("_", "-"): value for name, value in ({"host": "localhost:8000"} | headers).items()}
    try:
        access.check(named, path)
    except RequestError as refusal:
        return refusal.as_dict()["error"]["code"]
    return 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1:8000", "[::1]:8000", "[::1]"])
def test_this_machine_is_always_called_so(host: str) -> None:
    assert status(Access.at("127.0.0.1"), host=host) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "", " ", "localhost@evil", "[::1", "10.0.0.5", "localhost:x", "é"],
)
def test_no_other_name_is_answered(host: str) -> None:
    assert status(Access.at("127.0.0.1"), host=host) == 403


def test_a_name_may_be_allowed_and_a_server_for_everybody_knows_every_address() -> None:
    assert status(Access.at("127.0.0.1", ["Lab.example"]), host="lab.EXAMPLE:9") == 200
    everywhere = Access.at("0.0.0.0", api_key=None)
    assert status(everywhere, host="10.0.0.5:8000") == 200
    assert status(everywhere, host="[2001:db8::1]:8000") == 200
    assert status(everywhere, host="evil.example") == 403


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"origin": "http://localhost:8000"}, 200),
        ({"origin": "http://localhost:9000"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 200),
        ({"sec_fetch_site": "none"}, 200),
        ({"sec_fetch_site": "same-origin"}, 200),
    ],
)
def test_pages_of_other_origins_are_refused(headers: dict[str, str], expected: int) -> None:
    assert status(Access.at("127.0.0.1"), **headers) == expected


def test_an_origin_may_be_allowed() -> None:
    one = Access.at("127.0.0.1", origins=["https://Lab.example"])
    assert status(one, origin="https://lab.example") == 200
    assert status(one, origin="https://other.example") == 403
    assert status(Access.at("127.0.0.1", origins=["*"]), origin="https://other.example") == 200


def test_a_key_is_asked_for_everywhere_but_at_health() -> None:
    access = Access.at("127.0.0.1", api_key="s3cret-k")
    assert status(access) == status(access, authorization="Bearer wrong") == 401
    assert status(access, authorization="Basic s3cret-k") == 401
    assert status(access, authorization="Bearer s3cret-k") == status(access, authorization="bearer s3cret-k") == 200
    assert status(access, path="/health") == 200
    assert status(access, path="/health/") == 401
    assert status(access, path="/health", host="evil.example") == 403


def test_a_key_is_never_shown() -> None:
    assert "s3cret" not in repr(Access.at("127.0.0.1", api_key="s3cret"))
    with pytest.raises(RequestError) as refusal:
        Access.at("127.0.0.1", api_key="s3cret").check({"host": "localhost"}, "/v1/models")
    assert "s3cret" not in str(refusal.value.as_dict())


@pytest.mark.parametrize("name", ["lab:80", "http://lab", "a b", ""])
def test_what_is_no_name_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(UsageError, match="is no host name"):
        Access.at("127.0.0.1", [name])


@pytest.mark.parametrize("origin", ["lab.example", "https://lab.example/path", "", "null"])
def test_what_is_no_origin_is_refused_at_the_start(origin: str) -> None:
    with pytest.raises(UsageError, match="is no origin"):
        Access.at("127.0.0.1", origins=[origin])


def test_which_addresses_only_this_machine_reaches() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "lab.example")))
