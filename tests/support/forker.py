"""The process behind :mod:`forked_program`: imports everything, then forks a program for each request.

``python forker.py ADDRESS`` listens at a Unix socket and ends when nobody is connected any more. A request is JSON with
files: a pipe that is told the program's process number, and its exit status in the end, and those that it gets.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib.util
import json
import os
import pkgutil
import runpy
import selectors
import socket
import sys
import tempfile
import threading
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

from fresh_store import fresh_store
from powerlab.boards.registry import BOARDS
from powerlab.cli.commands.serve.server import compose
from powerlab_api.settings import Settings

_PACKAGES = ("powerlab", "powerlab_agent", "powerlab_api", "powerlab_dashboards")
_MOST_BYTES = 1 << 20
_MOST_FILES = 16
_ABOVE = 512
"""No program is given a file under so high a number."""


def main(address: str) -> None:
    """Serve until the last connection is closed; in a fork, be the program."""
    _prepare()
    connections = selectors.DefaultSelector()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{address}.new")
    listener.listen()
    connections.register(listener, selectors.EVENT_READ)
    os.rename(f"{address}.new", address)
    served = False
    while not served or len(connections.get_map()) > 1:
        for key, _ in connections.select():
            assert isinstance(key.fileobj, socket.socket)
            if key.fileobj is listener:
                connections.register(listener.accept()[0], selectors.EVENT_READ)
                served = True
            elif not _answer(key.fileobj, connections):
                connections.unregister(key.fileobj)
                key.fileobj.close()
        _bury()
    for path in (address, f"{address}.lock"):
        Path(path).unlink(missing_ok=True)


def _prepare() -> None:
    """Import all that programs import, and let SQLAlchemy and FastAPI prepare what they prepare once."""
    for package in map(importlib.import_module, _PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            spec = importlib.util.find_spec(module.name)
            if spec and (spec.origin or "").endswith(".py") and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    tuple(BOARDS.values())
    with tempfile.TemporaryDirectory() as folder, closing(fresh_store(Path(folder, "powerlab.db"))) as store:
        compose(store, Settings())
    assert threading.active_count() == 1, "a fork has but one of the threads"
    gc.collect()
    gc.freeze()  # no fork copies its memory by counting what will not go


def _answer(connection: socket.socket, connections: selectors.BaseSelector) -> bool:
    """Fork as a request says; return False where the other side has gone."""
    message, files, *_ = socket.recv_fds(connection, _MOST_BYTES, _MOST_FILES)
    if not message:
        return False
    if os.fork() == 0:
        for key in connections.get_map().values():
            os.close(key.fileobj.detach())  # type: ignore[union-attr]
        connections.close()
        _keep(json.loads(message), files[1:], files[0])
    for file in files:
        os.close(file)
    return True


def _bury() -> None:
    """Take note of the end of those who waited for programs, so that their processor time is counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _keep(request: dict[str, Any], files: list[int], report: int) -> NoReturn:
    """Fork the program, and tell its number and its exit status."""
    child = os.fork()
    if child == 0:
        os.close(report)
        _take(files, request["numbers"])
        if request["session"]:
            os.setsid()
        if request["cores"]:
            os.sched_setaffinity(0, request["cores"])
        _become(request["words"], Path(request["home"]), request["environment"])
    for file in files:
        os.close(file)
    os.write(report, f"{child}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(report, f"{status}\n".encode())
    os._exit(0)


def _take(files: list[int], numbers: list[int]) -> None:
    """Have files under the numbers that the program knows them by, and no others."""
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD, _ABOVE) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(moved, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)


def _become(words: list[str], home: Path, environment: dict[str, str]) -> NoReturn:
    """Be the program from here on."""
    os.chdir(home)
    os.environ.clear()
    os.environ.update(environment)
    module = words[1] if words[0] == "-m" else None
    sys.argv = words[1:] if module else words
    first = str(home) if module else str(Path(words[0]).parent)
    sys.path[:1] = [first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    status: object = 1
    try:
        if module is None:
            runpy.run_path(words[0], run_name="__main__")
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
    _end(status)


def _end(status: object) -> NoReturn:
    """End as Python does, but leave it to Linux to free the memory: that takes a tenth of a second otherwise."""
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    main(sys.argv[1])
