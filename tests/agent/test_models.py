"""Models on an agent's disk: fetched whole, resumed, verified, bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_server import PLAN
from onnx_bytes import onnx_like, sha256
from powerlab.domain.errors import PowerlabError
from powerlab_agent.client import Client, RefusedError, ServerUnreachableError
from powerlab_agent.models import ModelCache

FILE = onnx_like(700_000)


def never() -> bool:
    return False


def word(data: bytes, name: str = "net") -> str:
    return f"{name}@sha256:{sha256(data)}"


class Server:
    """The two questions a cache asks, with connections that are cut and bytes that are wrong."""

    def __init__(self, *files: bytes) -> None:
        self.files = {sha256(data): data for data in files}
        self.starts: list[int] = []
        self.cut_after: int | None = None
        self.spoil = False

    def model(self, key: str) -> Any:
        if key not in self.files:
            raise RefusedError("there is no model", "not-found", 404)
        return type("Record", (), {"byte_count": len(self.files[key])})

    def model_content(self, key: str, start: int) -> tuple[int, Iterator[bytes]]:
        self.starts.append(start)
        return start, self._blocks(self.files[key], start)

    def _blocks(self, data: bytes, start: int) -> Iterator[bytes]:
        for place in range(start, len(data), 100_000):
            if self.cut_after is not None and place >= self.cut_after:
                raise ServerUnreachableError("cut")
            block = data[place : place + 100_000]
            yield bytes(len(block)) if self.spoil else block


@pytest.fixture
def cache_of(tmp_path: Path) -> Callable[..., ModelCache]:
    def make(server: Any, max_bytes: int = 10_000_000) -> ModelCache:
        return ModelCache(server, tmp_path / "models", max_bytes)

    return make


def test_a_cut_download_goes_on_where_it_ended(cache_of: Any, tmp_path: Path) -> None:
    server = Server(FILE)
    server.cut_after = 300_000
    with pytest.raises(ServerUnreachableError):
        cache_of(server).fetch([word(FILE)], never)
    server.cut_after = None
    found = cache_of(server).fetch(["resnet50", "/some/file.onnx", word(FILE)], never)
    assert list(found) == [word(FILE)]
    assert Path(found[word(FILE)]).read_bytes() == FILE
    assert server.starts == [0, 300_000]
    assert cache_of(server).fetch([word(FILE)], never) == found
    assert server.starts == [0, 300_000]  # it is there: nothing is asked


def test_a_download_ends_when_it_is_told_to_and_goes_on_later(cache_of: Any) -> None:
    server, asked = Server(FILE), iter([False, True])
    assert cache_of(server).fetch([word(FILE)], lambda: next(asked)) is None
    assert cache_of(server).fetch([word(FILE)], never)
    assert server.starts == [0, 200_000]


def test_what_a_power_cut_tore_is_fetched_again(cache_of: Any, tmp_path: Path) -> None:
    server = Server(FILE)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / f"{sha256(FILE)}.part").write_bytes(bytes(400_000))
    found = cache_of(server).fetch([word(FILE)], never)
    assert Path(found[word(FILE)]).read_bytes() == FILE
    assert server.starts == [400_000, 0]


@pytest.mark.parametrize("damage", [b"", FILE[:-1] + b"?", FILE + b"more"])
def test_a_file_that_was_changed_is_fetched_again(cache_of: Any, damage: bytes) -> None:
    server = Server(FILE)
    path = Path(cache_of(server).fetch([word(FILE)], never)[word(FILE)])
    path.write_bytes(damage)
    cache_of(server).fetch([word(FILE)], never)
    assert path.read_bytes() == FILE


def test_other_bytes_from_the_server_are_refused(cache_of: Any, tmp_path: Path) -> None:
    server = Server(FILE)
    server.spoil = True
    with pytest.raises(PowerlabError, match="another SHA-256"):
        cache_of(server).fetch([word(FILE)], never)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_model_the_server_does_not_have_is_a_sentence(cache_of: Any) -> None:
    with pytest.raises(PowerlabError, match="cannot be fetched: there is no model") as caught:
        cache_of(Server()).fetch([word(FILE)], never)
    assert not isinstance(caught.value, RefusedError)


def test_what_was_not_used_for_longest_makes_room(cache_of: Any, tmp_path: Path) -> None:
    files = [onnx_like(100_000 + number, seed=number) for number in range(4)]
    server = Server(*files)
    cache = cache_of(server, 310_000)
    paths = []
    for number, data in enumerate(files[:3]):
        paths.append(Path(cache.fetch([word(data)], never)[word(data)]))
        os.utime(paths[-1], (number, number))
    cache.fetch([word(files[0])], never)  # used again: now the second is the oldest
    cache.fetch([word(files[3])], never)
    assert [path.exists() for path in paths] == [True, False, True]
    cache.fetch([word(data) for data in files[1:]], never)
    assert sum(path.stat().st_size for path in (tmp_path / "models").iterdir()) <= 310_000
    with pytest.raises(PowerlabError, match="keeps at most 310000"):
        cache.fetch([word(data) for data in files], never)


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("in the way")
    with pytest.raises(PowerlabError, match="models cannot be kept in"):
        ModelCache(Server(FILE), tmp_path / "models", 10_000_000).fetch([word(FILE)], never)


@pytest.mark.campaign
def test_from_a_real_server_that_is_killed_meanwhile(server: Any, identity: Any, cache_of: Any, tmp_path: Path) -> None:
    """Through the agent's own client: whole, from the middle, refused, away."""
    from urllib3 import request

    url = f"{server.url}/api/v1/models/{sha256(FILE)}"
    request("PUT", url, json={"name": "net", "byte_count": len(FILE)})
    assert request("PATCH", url, body=FILE, headers={"Upload-Offset": "0"}).status == 200
    server.create_sweep(identity, replace(PLAN, models=(word(FILE),)))  # an agent gets what its sweeps name
    client = Client(server.url, identity.token)
    begin, blocks = client.model_content(sha256(FILE), 650_000)
    assert (begin, b"".join(blocks)) == (650_000, FILE[650_000:])
    with pytest.raises(RefusedError):
        client.model_content("0" * 64, 0)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / f"{sha256(FILE)}.part").write_bytes(FILE[:123_456])
    server.kill()
    with pytest.raises(ServerUnreachableError):
        cache_of(client).fetch([word(FILE)], never)
    server.start()
    found = cache_of(client).fetch([word(FILE)], never)
    assert Path(found[word(FILE)]).read_bytes() == FILE
