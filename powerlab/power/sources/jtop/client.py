"""Print the rails of the jtop service: ``python -m powerlab.power.sources.jtop.client SOCKET SECONDS``.

A program of its own, for two reasons: importing jetson-stats changes how a process starts its children and
looks for CUDA, OpenCV and more in a thread, which has no place in a process that measures; and jetson-stats is under
the AGPL-3.0, so it is used at arm's length. It prints JSON lines: the first is ``{"version", "interval_s"}``, each
further one ``{"rails": {NAME: {"power_mw", "volt_mv", "curr_ma"}}}``; where the service cannot be used, ``{"error"}``.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_FIELDS = {"power": "power_mw", "volt": "volt_mv", "curr": "curr_ma"}


def rails_of(power: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the rails in jtop's ``power``, each with its present figures.

    The rail that feeds the others is taken out of ``rail`` by jtop and lies, with its name, in ``tot``; a ``tot``
    without a name is a sum of jtop's own, and no rail. ``avg`` is (new + old) / 2 and is left out.
    """
    rails = dict(power.get("rail", {}))
    total = power.get("tot", {})
    if total.get("name"):
        rails[str(total["name"])] = total
    return {
        name: {ours: int(found[theirs]) for theirs, ours in _FIELDS.items() if theirs in found}
        for name, found in rails.items()
        if "power" in found
    }


def _say(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Print until whoever reads is gone or the service ends."""
    socket, interval_s = arguments[0], float(arguments[1])
    try:
        jtop = importlib.import_module("jtop")
        service: Any = importlib.import_module("jtop.service")
        service.JTOP_PIPE = socket
    except ImportError as error:
        _say({"error": f"the Python package jetson-stats is not installed ({error})"})
        return 1
    client = jtop.jtop(interval=interval_s)
    try:
        client.start()
        _say({"version": jtop.__version__, "interval_s": client.interval})
        while client.ok():
            _say({"rails": rails_of(client.power)})
    except BrokenPipeError:
        return 0
    except Exception as error:
        # Its own exceptions, those of the connection, and whatever an incompatible service makes it raise.
        _say({"error": " ".join(str(error).split()) or type(error).__name__})
        return 1
    _say({"error": "the service has stopped sending"})
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
