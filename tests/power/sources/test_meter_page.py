"""What docs/guides/wall-meter.md says works as it is written there."""

from __future__ import annotations

import http.server
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from powerlab.domain.power import Availability
from powerlab.power.sources.meter import Meter
from powerlab.power.sources.meter.config import parse_config
from powerlab.power.sources.meter.line_protocol import parse_reading
from powerlab.sysroot import Sysroot

PAGE = (Path(__file__).parents[3] / "docs/guides/wall-meter.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


class Plug(http.server.BaseHTTPRequestHandler):
    """A smart plug that answers as the Tasmota firmware does."""

    def do_GET(self) -> None:
        assert self.path == "/cm?cmnd=Status%208"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"StatusSNS": {"ENERGY": {"Power": 42, "Voltage": 230}}}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def plug() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Plug) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_example_file_is_one() -> None:
    config = parse_config(block("toml"), "the example")
    assert str(config.address) == "serial:///dev/ttyUSB0?baud=115200"


def test_every_key_is_explained() -> None:
    for key in ("address", "covers", "field", "resolution_w", "relative_error", "update_period_s"):
        assert f"`{key}`" in PAGE
    assert "`current_range_a`, `voltage_range_v`" in PAGE


def test_the_example_lines_are_readings() -> None:
    texts = [re.split(r"  +", line)[0] for line in block("text").splitlines()]
    readings = [parse_reading(text, "P") for text in texts]
    assert readings == [{"wall": 12.34}, {"wall": pytest.approx(4.761)}, {"wall": 11.5}, {}]


def test_the_example_script_lets_powerlab_read_a_plug(
    plug: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POWERLAB_METER", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = block("python").replace("192.168.1.50", f"127.0.0.1:{plug}").replace("5025", str(port))
    assert script.count("\n") <= 20
    process = subprocess.Popen([sys.executable, "-c", script])
    (tmp_path / "etc/powerlab").mkdir(parents=True)
    (tmp_path / "etc/powerlab/meter.toml").write_text(
        f'address = "tcp://127.0.0.1:{port}"\nresolution_w = 1\nupdate_period_s = 1\nrelative_error = 0.02\n'
        'covers = "the plug"\n'
    )
    try:
        (channel,) = Meter().channels(Sysroot(tmp_path))
        assert channel.session is not None  # type: ignore[union-attr]
        with channel.session():  # type: ignore[union-attr]
            (stamped,) = channel.read()  # type: ignore[union-attr,misc]
        assert stamped.value == 42.0
        assert Meter().probe(Sysroot(tmp_path)).availability is Availability.AVAILABLE
    finally:
        process.kill()
        process.communicate()
