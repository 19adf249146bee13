"""The ``powerlab`` program without its second of start-up: forks of one process that has imported everything already.

A fork is a process of its own like any other: it has its own files, signals, environment and exit status.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from powerlab import cli

_PATIENCE_S = 300.0


def run_forked(words: list[str], home: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run ``powerlab WORDS`` in the folder ``home`` and wait for its end.

    Raises:
        TimeoutError: the command took more than five minutes.
    """
    with tempfile.NamedTemporaryFile("r") as output, tempfile.NamedTemporaryFile("r") as errors:
        status = _forker().run(
            {"words": words, "home": str(home), "environment": dict(environment), "files": [output.name, errors.name]}
        )
        return subprocess.CompletedProcess(["powerlab", *words], status, output.read(), errors.read())


class _Forker:
    """A process that forks itself once per line of JSON and answers with the exit status."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def run(self, request: dict[str, object]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        if not select.select([self._process.stdout], [], [], _PATIENCE_S)[0]:
            self._process.kill()
            raise TimeoutError(f"powerlab {request['words']} took more than {_PATIENCE_S:.0f} s")
        return int(self._process.stdout.readline())


@cache
def _forker() -> _Forker:
    return _Forker()


def _serve() -> int | None:
    """Fork once per request; return None in the parent at the end, and the command's exit status in a child."""
    for command in cli.COMMANDS:
        importlib.import_module(f"powerlab.cli.commands.{command}")
    gc.freeze()  # no fork copies its memory by counting what will not go
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(request)
            return cli.main(request["words"])
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
    return None


def _become(request: dict[str, object]) -> None:
    os.chdir(request["home"])
    os.environ.clear()
    os.environ.update(request["environment"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, path in enumerate([None, *request["files"]]):
        source = nothing if path is None else os.open(path, os.O_WRONLY)
        os.dup2(source, descriptor)
        os.close(source)


if __name__ == "__main__":
    sys.exit(_serve())
