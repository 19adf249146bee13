"""The protection against too much current at work."""

from __future__ import annotations

from powerlab.boards.simulator.faults.base import Fault


class OverCurrent(Fault):
    """``soctherm_oc`` counts an event twice a second, and halves the clocks; NVIDIA cards feel their power brake.

    The part that is the chip does it, because counts and clocks are its own.
    """

    name = "over-current"
    summary = "over-current events are counted, or brake NVIDIA cards, and halve the clocks"
    needs = ("soctherm_oc", "nvml")
    lacks = "over-current protection that counts"
