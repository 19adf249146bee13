"""Who has come of the other devices of a cluster: the first one lets in who knows its key, again after it was gone."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from powerlab import __version__
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Rail
from powerlab.sweep.cluster.clocks import Comparison
from powerlab.sweep.cluster.link import Done, Hello, Link, LinkError

_HELLO_S, _LOOK_S = 10.0, 0.5


@dataclass(slots=True, kw_only=True)
class Other:
    """Another device that is there.

    Attributes:
        hello: how it introduced itself.
        link: to it.
        before: its clock when recording began.
        clock_error_s: of the latest recording.
    """

    hello: Hello
    link: Link
    before: Comparison | None = None
    clock_error_s: float = 0.0


class Others:
    """The other devices, as they come and go; a context manager.

    Args:
        name: this device's.
        names: those of the others, by rank.
        stop: ends waiting.
        patience_s: how long to wait for one that is not there.

    Attributes:
        names: likewise.
        port: where they may come.
        key: what they must know.
        there: those that are there, by name.
        rails: what each must have that comes again, by name.
    """

    def __init__(self, name: str, names: Sequence[str], stop: threading.Event, patience_s: float) -> None:
        self._name, self._stop, self._patience_s = name, stop, patience_s
        self.names = tuple(names)
        self.key = secrets.token_hex(32)
        self.there: dict[str, Other] = {}
        self.rails: Mapping[str, tuple[Rail, ...]] = {}
        self._listener = socket.create_server(("", 0))
        self.port = int(self._listener.getsockname()[1])
        self._came = threading.Condition()
        self._refused = ""
        self._thread = threading.Thread(target=self._receive, name="cluster", daemon=True)
        self._thread.start()

    def __enter__(self) -> Others:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for other in self.there.values():
            other.link.close()

    def lost(self, name: str, other: Other, error: Exception) -> str:
        """Forget a device that is gone until it comes again; return the sentence about it."""
        with self._came:
            if self.there.get(name) is other:
                del self.there[name]
        other.link.close()
        return f"the device {name} is gone ({str(error).rstrip('.')}); look after its agent."

    def gathered(self) -> dict[str, Other]:
        """Wait for all; raises PowerlabError that names one who does not come."""
        deadline = time.monotonic() + self._patience_s
        with self._came:
            while missing := [name for name in self.names if name not in self.there]:
                left_s = deadline - time.monotonic()
                if self._refused:
                    raise PowerlabError(self._refused)
                if left_s <= 0 or self._stop.is_set():
                    raise PowerlabError(
                        f"the device {missing[0]} did not come within {self._patience_s:g} s; look whether its "
                        f"agent runs and reaches port {self.port} of {self._name}."
                    )
                self._came.wait(min(left_s, _LOOK_S))
            return {name: self.there[name] for name in self.names}

    def _receive(self) -> None:
        """Let devices in that know the key, again after they were gone."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # it was closed
            try:
                link = Link(connection, self.key)
            except LinkError:
                connection.close()
                continue
            try:
                hello = link.receive(_HELLO_S)
            except LinkError:
                link.close()
                continue
            self._let_in(link, hello)

    def _let_in(self, link: Link, hello: object) -> None:
        """Note a device that introduces itself, or why it cannot take part."""
        with self._came:
            refused = self._refused = self._why_not(hello)
            if not refused and isinstance(hello, Hello):
                if (before := self.there.pop(hello.name, None)) is not None:
                    before.link.close()
                self.there[hello.name] = Other(hello=hello, link=link)
            else:
                link.close()
            self._came.notify_all()

    def _why_not(self, hello: object) -> str:
        if isinstance(hello, Done):
            return hello.failure
        if not isinstance(hello, Hello) or hello.name not in self.names:
            return "a device came that does not belong to this sweep; cancel it and ask again."
        known = self.rails.get(hello.name)
        if hello.version != __version__:
            return (
                f"{hello.name} has powerlab {hello.version}, and {self._name} has {__version__}; install the same on "
                "both."
            )
        if known and {rail.key for rail in known} != {renamed(rail, hello.name).key for rail in hello.rails}:
            return f"{hello.name} came again with other power rails; start the sweep anew."
        return ""


def renamed(rail: Rail, device: str) -> Rail:
    """Return another device's rail, named after that, too."""
    return replace(rail, name=f"{rail.name}@{device}")
