"""Light or dark, as a visitor chose."""

from __future__ import annotations

import re

from starlette.testclient import TestClient


def test_a_page_is_as_the_system_is_until_its_reader_chooses(client: TestClient) -> None:
    page = client.get("/devices").text
    assert 'data-theme="system"' in page
    assert 'content="light dark"' in page
    switches = re.findall(r'href="(/theme/[^"]+)"', page)
    assert switches == ["/theme/light?next=/devices", "/theme/dark?next=/devices"]
    answer = client.get(switches[1], follow_redirects=False)
    assert answer.headers["location"] == "/devices"
    assert 'data-theme="dark"' in client.get("/").text
    client.get("/theme/system")
    assert 'data-theme="system"' in client.get("/").text


def test_there_is_no_other_theme(client: TestClient) -> None:
    assert client.get("/theme/pink").status_code == 404


def test_a_cookie_of_somebody_elses_is_ignored(client: TestClient) -> None:
    client.cookies.set("powerlab_theme", '"><script>')
    assert 'data-theme="system"' in client.get("/").text
