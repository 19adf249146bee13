"""The real jtop service of the package jetson-stats, off a Jetson: ``python jtop_server.py ROOT [VERSION]``.

Real are its server process and manager, the socket, its timer, and its reading of INA3221 monitors. Replaced are only
places: the socket (ROOT/run/jtop.sock), the I2C devices (ROOT/sys/bus/i2c/devices), the folder of its settings, the
group that owns the socket, the table of hardware facts, and, where a version is given, what it says its version is.
Prints a line when it serves, and ends when its standard input does.
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

from jtop import service
from jtop.core import config, power


def main(root: str, version: str | None) -> None:
    service.JTOP_PIPE = f"{root}/run/jtop.sock"
    config.get_config_service = lambda *_: f"{root}/jtop-settings"
    service.getgrnam = lambda _: SimpleNamespace(gr_gid=os.getgid())
    service.get_hardware = lambda: {"Model": "NVIDIA Jetson AGX Xavier Developer Kit"}
    service.os.getuid = lambda: 0  # it insists on root, which it needs here for nothing
    service.os.chown = lambda *_: None
    find = power.find_all_i2c_power_monitor
    power.find_all_i2c_power_monitor = lambda _: find(f"{root}/sys/bus/i2c/devices")
    power.find_all_system_monitor = lambda _: {}
    server = service.JtopServer()
    if version is not None:
        server._version = version
    server.start()
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    try:
        sys.stdin.read()
    finally:
        server.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
