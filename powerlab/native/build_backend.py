"""The PEP 517 build backend: scikit-build-core, with a compiler brought along where none is installed that will do.

A board or a laptop often has Python and no C++ compiler, or one older than C++20 (JetPack 4 and 5). There the build
asks pip for the ``ziglang`` wheel, which carries clang and the C and C++ libraries, and compiles with that; elsewhere
nothing changes. Wheels for other machines are built with it, too: ``POWERLAB_TARGET`` names one, such as
``aarch64-linux-gnu.2.17`` (see scripts/build_wheels.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from scikit_build_core import build as _scikit_build

_COMPILERS = ("c++", "g++", "clang++")
_FALLBACK = "ziglang>=0.15"
_WRAPPED = Path(__file__).resolve().with_name("fallback_compiler.py")

prepare_metadata_for_build_wheel = _scikit_build.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = _scikit_build.prepare_metadata_for_build_editable
build_sdist = _scikit_build.build_sdist
get_requires_for_build_sdist = _scikit_build.get_requires_for_build_sdist


def _compiler_missing() -> bool:
    """Tell whether neither ``CXX`` is set nor the first compiler on ``PATH``, which CMake takes, knows C++20."""
    if os.environ.get("POWERLAB_TARGET"):
        return True
    if os.environ.get("CXX"):
        return False
    found = next(filter(None, map(shutil.which, _COMPILERS)), None)
    return found is None or not _knows_cpp20(found)


def _knows_cpp20(compiler: str) -> bool:
    """Tell whether a compiler and its library are new enough: GCC 10 is the first with ``<span>``."""
    words = [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return not subprocess.run(words, input=b"#include <span>\n", capture_output=True, check=False).returncode


def _check_python_headers() -> None:
    """Stop with one sentence where Python's own headers are missing: CMake's message for it is a page long."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        raise SystemExit(
            f"powerlab: {header} is missing, so its native core cannot be built; install Python's headers "
            "(Debian and Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel) and run this again."
        )


def _use_fallback_compiler() -> None:
    """Write one-line wrappers for the compiler in the ``ziglang`` wheel and point CMake's variables at them."""
    target = os.environ.get("POWERLAB_TARGET", "")
    folder = Path("build", "fallback-compiler", target).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # PEP 517 runs a backend in the source folder. The place stays the same from build to build: CMake keeps the
    # compiler's path, and a new one would throw away everything already built.
    for variable, tool in (("CXX", "c++"), ("CC", "cc"), ("AR", "ar"), ("RANLIB", "ranlib")):
        wrapper = folder / f"zig-{tool}"
        option = f"--target={target}" if target and tool in {"c++", "cc"} else ""
        wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{_WRAPPED}" {tool} {option} "$@"\n')
        wrapper.chmod(0o700)
        os.environ[variable] = str(wrapper)


def prepare_compiler() -> None:
    """Make sure that the native core can be compiled, with the fallback compiler where no other is installed."""
    _check_python_headers()
    if _compiler_missing():
        _use_fallback_compiler()


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """PEP 517: what pip installs before a wheel is built."""
    return [*_scikit_build.get_requires_for_build_wheel(config_settings), *_fallback_requirement()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """PEP 660: what pip installs before an editable wheel is built."""
    return [*_scikit_build.get_requires_for_build_editable(config_settings), *_fallback_requirement()]


def _fallback_requirement() -> list[str]:
    return [_FALLBACK] if _compiler_missing() else []


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """PEP 517: build a wheel."""
    prepare_compiler()
    return _scikit_build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """PEP 660: build an editable wheel."""
    prepare_compiler()
    return _scikit_build.build_editable(wheel_directory, config_settings, metadata_directory)
