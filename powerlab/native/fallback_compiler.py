"""Run the compiler in the ``ziglang`` wheel as if it were the system's clang.

It is clang with its own idea of processors: without a word it compiles for the very machine it runs on, and it spells
their names its own way. The kernels say exactly which instructions each of their files may use, and the rest of the
core must run everywhere, so the arguments are put into its language on the way through.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

_FEATURES = {"fp16": "fullfp16", "simd": "neon", "crypto": "aes"}
"""Arm features whose names differ; all others are the same in both languages."""

_BASELINE = "-mcpu=baseline"


def _translate_march(value: str) -> str:
    """Return the argument that means ``-march=value``: ``x86-64-v3``, ``armv8.2-a+fp16+dotprod``, ``haswell``."""
    arm = re.fullmatch(r"armv(\d+)(?:\.(\d+))?-a((?:\+\w+)*)", value)
    if arm is None:
        return f"-march={value.replace('-', '_')}"
    major, minor, extensions = arm.groups()
    architecture = f"v{major}_{minor}a" if minor else f"v{major}a"
    wanted = [_FEATURES.get(name, name) for name in extensions.split("+") if name]
    return "-mcpu=" + "+".join(["generic", architecture, *wanted])


def translate(arguments: Sequence[str]) -> list[str]:
    """Return a compiler's arguments as this one understands them."""
    translated = [_BASELINE]
    for argument in arguments:
        if argument.startswith("-march="):
            translated.append(_translate_march(argument.removeprefix("-march=")))
        elif not argument.startswith("-mtune="):
            # Here -mtune would choose the instructions too, not only their order.
            translated.append(argument)
    return translated


def main() -> None:
    """Become the compiler: ``python fallback_compiler.py c++ ARGUMENTS...``."""
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        sys.exit("powerlab: the fallback compiler is not installed; run: pip install ziglang")
    program = Path(found.origin).parent / "zig"
    tool, *arguments = sys.argv[1:]
    if tool in {"cc", "c++"}:
        arguments = translate(arguments)
    os.execv(program, [str(program), tool, *arguments])  # noqa: S606


if __name__ == "__main__":
    main()
