"""Connections to a meter: a serial line or TCP."""

from __future__ import annotations

import os
import socket
import termios
from functools import partial

from powerlab.power.sampling.line_feed import LineFeed
from powerlab.power.sources.meter.config import MeterConfig
from powerlab.power.sources.meter.line_protocol import parse_reading
from powerlab.sysroot import Sysroot

CONNECT_S = 5.0


def line_feed(sysroot: Sysroot, config: MeterConfig) -> LineFeed:
    """Connect to a meter that sends lines.

    Raises:
        OSError: it cannot be reached.
    """
    parse = partial(parse_reading, field=config.field)
    if config.address.kind == "serial":
        descriptor = open_serial(str(sysroot.path(config.address.device)), config.address.baud)
        return LineFeed(descriptor, parse, partial(os.close, descriptor), joined_late=True)
    connection = open_tcp(config.address.host, config.address.port)
    return LineFeed(connection.fileno(), parse, connection.close, joined_late=False)


def open_tcp(host: str, port: int) -> socket.socket:
    """Connect; a silent peer that is gone is noticed within about ten seconds.

    Raises:
        OSError: nobody answers.
    """
    try:
        connection = socket.create_connection((host, port), timeout=CONNECT_S)
    except OSError as error:
        raise ConnectionError(f"{host}:{port} does not answer ({error.strerror or error})") from error
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    return connection


def open_serial(path: str, baud: int) -> int:
    """Open a serial line raw, 8 data bits, no parity, 1 stop bit; what waited in it is thrown away (termios(3)).

    Raises:
        OSError: there is no such line, this user may not open it, or it does not know the speed.
    """
    speed = getattr(termios, f"B{baud}", None)
    if speed is None or baud == 0:
        raise OSError(f"a serial line has no speed of {baud} baud; 9600 and 115200 are usual")
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        control = termios.CS8 | termios.CREAD | termios.CLOCAL
        characters: list[bytes | int] = [b"\0"] * len(termios.tcgetattr(descriptor)[6])
        characters[termios.VMIN], characters[termios.VTIME] = 1, 0
        termios.tcsetattr(descriptor, termios.TCSANOW, [0, 0, control, 0, speed, speed, characters])
        termios.tcflush(descriptor, termios.TCIFLUSH)
    except termios.error as error:
        os.close(descriptor)
        raise OSError(f"{path} is not a serial port ({error.args[-1]})") from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
