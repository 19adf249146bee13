"""Power modes that cannot be set without a reboot."""

from __future__ import annotations

from powerlab.boards.simulator.faults.base import Fault


class RebootPrompt(Fault):
    """``nvpmodel`` asks for a reboot for every mode that is not the present one, and sets none.

    The program itself looks for the fault's name in the tree: it runs on its own.
    """

    name = "reboot-prompt"
    summary = "nvpmodel asks for a reboot for every other mode, and sets none"
    needs = ("nvpmodel",)
    lacks = "nvpmodel"
