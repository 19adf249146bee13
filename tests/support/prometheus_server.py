"""A real Prometheus with powerlab's shipped configuration, on a free port, gone when the test is."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from free_port import free_port
from patient_http import http_answer
from requires import require_program

SHIPPED = Path(__file__).resolve().parents[2] / "dashboards" / "prometheus"
_PATIENCE_S = 60.0


def promtool(*words: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the tool that checks what Prometheus reads."""
    program = require_program("promtool", "prometheus")
    return subprocess.run([program, *words], input=text, capture_output=True, text=True, check=False)


def shipped_config(folder: Path, targets: dict[str, str], token: str = "") -> Path:
    """Copy the shipped configuration, with other addresses, a token, and scrapes a second; return the file."""
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    (folder / "powerlab-token").write_text(token, encoding="utf-8")
    config = folder / "prometheus.yml"
    text = config.read_text(encoding="utf-8")
    for shipped, own in {**targets, "scrape_interval: 15s": "scrape_interval: 500ms"}.items():
        assert shipped in text
        text = text.replace(shipped, own)
    config.write_text(text, encoding="utf-8")
    return config


@dataclass
class Prometheus:
    """A running one."""

    url: str

    def ask(self, path: str, **fields: str) -> Any:
        """Return the data of an answer of its HTTP API; a query that it refuses fails the test."""
        reply = http_answer("GET", f"{self.url}/api/v1/{path}?{urlencode(fields)}")
        answer = json.loads(reply.data)
        assert answer["status"] == "success", f"{fields}: {answer}"
        return answer["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and the value of every series of an instant query."""
        data = self.ask("query", query=expression)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(series["metric"], float(series["value"][1])) for series in data["result"]]

    def wait_for(self, expression: str, patience_s: float = _PATIENCE_S) -> list[tuple[dict[str, str], float]]:
        """Ask until there is an answer."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            found = self.query(expression)
            if found:
                return found
            time.sleep(0.1)
        targets = self.ask("targets")["activeTargets"]
        raise AssertionError(f"{expression} has no answer; targets: {targets}")


@contextmanager
def running_prometheus(config: Path, data: Path, *words: str) -> Iterator[Prometheus]:
    """Start Prometheus with a configuration and wait until it answers."""
    program = require_program("prometheus", "prometheus")
    port = free_port()
    options = [
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
        *words,
    ]
    log = data.parent / "prometheus.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen([program, *options], stdout=file, stderr=file)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for_answer(f"{url}/-/ready", process, log)
        yield Prometheus(url)
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for_answer(address: str, process: subprocess.Popen[Any], log: Path) -> None:
    """Wait until an address answers with 200, and fail where the process that should ends before."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            if urllib3.request("GET", address, retries=False, timeout=5.0).status == 200:
                return
        except urllib3.exceptions.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"{address} does not answer: {log.read_text(encoding='utf-8')}")
