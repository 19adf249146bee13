"""Parse lines from a file descriptor (pipe, socket, serial line) into readings."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from powerlab.power.sampling.stream import Arrival

ParseLine = Callable[[str], Mapping[str, float]]
"""Turns a line into W by rail; ValueError where it is no reading."""

_LONGEST_LINE = 16384
_CHUNK = 65536
_END_S = 2.0


class LineFeed:
    """Lines end with a line feed, a carriage return or both.

    Args:
        descriptor: what to read.
        parse: what a line says.
        close: called once at the end.
        joined_late: the first line may have begun before anyone listened, and its tail could pass for a reading
            (``4.5`` of ``234.5``): it is dropped.
    """

    def __init__(self, descriptor: int, parse: ParseLine, close: Callable[[], None], *, joined_late: bool) -> None:
        self.complaint = ""
        self._descriptor, self._parse, self._close = descriptor, parse, close
        self._rest = b""
        self._dropping = joined_late
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def receive(self, timeout_s: float) -> Sequence[Arrival]:
        """Wait for at most that long; of lines that came together the newest counts, for all have one stamp.

        Raises:
            OSError: the other side is gone.
        """
        if not self._poll.poll(timeout_s * 1e3):
            return ()
        now_ns = time.monotonic_ns()
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return ()  # it was ready, and is not any more
        if not chunk:
            said = f"; it said {self.complaint!r}" if self.complaint else ""
            raise ConnectionError(f"the other side has ended{said}")
        values_w: dict[str, float] = {}
        for line in self._lines(chunk):
            try:
                values_w.update(self._parse(line))
            except ValueError:
                self.complaint = line[:80]
        return (Arrival(now_ns, values_w),) if values_w else ()

    def close(self) -> None:
        """End the connection."""
        self._close()

    def _lines(self, chunk: bytes) -> list[str]:
        *lines, self._rest = (self._rest + chunk.replace(b"\r", b"\n")).split(b"\n")
        if self._dropping and lines:
            self._dropping = False
            del lines[0]
        if len(self._rest) > _LONGEST_LINE:
            self._rest, self._dropping = b"", True
        texts = (line.decode("utf-8", "replace").strip() for line in lines)
        return [text for text in texts if text]


def program_feed(command: Sequence[str], parse: ParseLine) -> LineFeed:
    """Start a program and read its lines, its complaints too; it is ended with the feed.

    It has no standard input, and a group of its own, so that Ctrl-C reaches it through powerlab alone.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    output = process.stdout
    if output is None:
        raise OSError(f"{command[0]} has no output")

    def close() -> None:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        output.close()

    return LineFeed(output.fileno(), parse, close, joined_late=False)
