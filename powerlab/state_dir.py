"""The state directory: mode journals, results, an agent's identity and spool."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from powerlab.sysroot import Sysroot

VARIABLE = "POWERLAB_STATE_DIR"


def state_dir(sysroot: Sysroot | None = None) -> Path:
    """Return ``$POWERLAB_STATE_DIR``, else the user's state directory (``$XDG_STATE_HOME/powerlab``).

    A device behind another root keeps its own, ``var/lib/powerlab`` below that root, so that whoever comes to it finds
    its mode journal.
    """
    if sysroot is not None and sysroot.base != Path("/"):
        return sysroot.path("/var/lib/powerlab")
    configured = os.environ.get(VARIABLE)
    return Path(configured) if configured else platformdirs.user_state_path("powerlab")
