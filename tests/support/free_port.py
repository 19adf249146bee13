"""A port for a program that must be told its port, because it is stopped and started again at the same address."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

_FIRST = 10_081
"""Above 10,080, which browsers refuse (Fetch, section "Port blocking")."""

_GIVEN_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a port of this machine on which nobody listens.

    It lies below those that Linux gives to connections: one of these may be taken by any connection on the machine
    between two lives of the program, or before its first.
    """
    end = int(_GIVEN_OUT.read_text(encoding="ascii").split()[0])
    while True:
        port = _FIRST + secrets.randbelow(end - _FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
