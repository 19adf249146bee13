"""The compiled shaders that lie beside this module; ``scripts/build_shaders.py`` makes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "spirv"


@cache
def spirv(kernel: str, *, half: bool) -> bytes:
    """Return the SPIR-V of a kernel that stores numbers in 16 bits, or in 32."""
    return (FOLDER / f"{kernel}.{'fp16' if half else 'fp32'}.spv").read_bytes()
