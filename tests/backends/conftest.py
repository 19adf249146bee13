"""The engine's own tests lend these their small models; see tests/engine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "engine")]
