"""Which requests of a browser come from a page of this server."""

from __future__ import annotations

import pytest

from powerlab.access.origin import check_origin
from powerlab.store.errors import ForbiddenError

OWN = {"host": "server:8765"}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_is_open_to_every_page(method: str) -> None:
    check_origin(method, {**OWN, "sec-fetch-site": "cross-site", "origin": "https://evil.example"}, browser=True)


@pytest.mark.parametrize("browser", [True, False])
@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "same-origin", "origin": "null"},
        {"origin": "http://server:8765"},
        {"origin": "https://SERVER:8765"},
    ],
)
def test_a_page_of_this_server_writes(headers: dict[str, str], browser: bool) -> None:
    check_origin("POST", {**OWN, **headers}, browser=browser)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "BREW"])
@pytest.mark.parametrize("browser", [True, False])
@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "origin": "http://server:8765"},
        {"origin": "http://evil.example"},
        {"origin": "http://server:8766"},
        {"origin": "http://server"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://[::1"},
        {"origin": "", "host": ""},
    ],
)
def test_no_other_page_does(headers: dict[str, str], browser: bool, method: str) -> None:
    with pytest.raises(ForbiddenError, match="page of this server"):
        check_origin(method, {**OWN, **headers}, browser=browser)


def test_what_says_nothing_is_a_program_and_programs_have_tokens() -> None:
    check_origin("POST", OWN, browser=False)
    with pytest.raises(ForbiddenError, match="Bearer"):
        check_origin("POST", OWN, browser=True)
