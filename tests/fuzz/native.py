"""The native core once more, built with sanitizers, and what a Python needs to load it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nanobind

from fuzz.sandbox import NATIVE_VARIABLE

ROOT = Path(__file__).parents[2]


def build(folder):
    """Build the module in ``folder``/native, or what changed of it, and return where it is."""
    place = folder / "native"
    settings = (
        "-DPOWERLAB_SANITIZE=address",
        f"-Dnanobind_DIR={nanobind.cmake_dir()}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    subprocess.run(["cmake", "-S", ROOT, "-B", place, *settings], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", place, "--target", "_native", "--parallel", "2"], check=True)
    (module,) = place.glob("_native*.so")
    return module.resolve()


def environment(module):
    """Return the variables under which a Python that knows nothing of sanitizers loads ``module``."""
    libraries = [_library(name) for name in ("libasan.so", "libubsan.so")]
    return {
        NATIVE_VARIABLE: str(module),
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # the interpreter leaks on purpose
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # else arrays lie in pools, whose ends the sanitizer does not know
    }


def _library(name):
    return subprocess.run(
        ["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()
