"""The compose file's services as plain processes: the same commands and environment, in folders of this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Service:
    """A service as compose would start it.

    Attributes:
        words: its entry point and its arguments.
        environment: its image's, then its own.
        mounts: files and folders of the repository, by where they are in the container.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: Mapping[str, Path] = field(default_factory=dict)


def _filled(value: Any) -> Any:
    """Put defaults in place of variables, as compose does where nothing is set."""
    if isinstance(value, dict):
        return {name: _filled(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"(?<!\$)\$\{\w+:-([^}]*)\}", r"\1", value).replace("$$", "$")


def _image(dockerfile: Path) -> tuple[list[str], list[str], dict[str, str]]:
    """Return entry point, arguments and environment of an image that is built here."""
    last = dockerfile.read_text(encoding="utf-8").rpartition("\nFROM ")[2]
    found = {name: json.loads(words) for name, words in re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", last, re.MULTILINE)}
    (pairs,) = re.findall(r"^ENV (.*)$", last, re.MULTILINE)
    return found["ENTRYPOINT"], found["CMD"], dict(pair.split("=", 1) for pair in pairs.split())


def services() -> dict[str, Service]:
    """Return every service by its name."""
    document = _filled(yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8")))
    found = {}
    for name, said in document["services"].items():
        entry, command, environment = ([], [], {}) if "image" in said else _image(ROOT / said["build"]["dockerfile"])
        entry, command = said.get("entrypoint", entry), said.get("command", command)
        mounts = (one.split(":") for one in said.get("volumes", ()) if one.startswith("./"))
        found[name] = Service(
            words=(*entry, *command),
            environment={**environment, **said.get("environment", {})},
            mounts={inside: ROOT / outside for outside, inside, *_ in mounts},
        )
    return found


@contextmanager
def running(service: Service, places: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a service meanwhile, with whatever it started.

    Args:
        service: which.
        places: what is somewhere else here than in the container: addresses, paths.
        folder: its home; its output goes to the file ``log`` there.
    """
    pattern = re.compile("|".join(map(re.escape, sorted(places, key=len, reverse=True))))

    def here(text: str) -> str:
        return pattern.sub(lambda found: places[found[0]], text)

    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {name: here(value) for name, value in service.environment.items() if name != "PATH"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("POWERLAB_", "XDG_"))}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [here(word) for word in service.words],
            env={**kept, "HOME": str(folder), **own, "PATH": path},
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(timeout=3)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
