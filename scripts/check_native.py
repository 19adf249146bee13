"""Check the C++: its layout with clang-format, and that it compiles without a warning; ``--format`` fixes it."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "powerlab" / "native"
BUILD = ROOT / "build" / "check"


def run(*command: str) -> bool:
    """Run a command with the environment's programs first on the path, and tell whether it went well."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, check=False).returncode == 0


def use_backend_compiler() -> None:
    """Compile with what the build itself would use, the fallback compiler included."""
    sys.path.insert(0, str(SOURCES))
    importlib.import_module("build_backend").prepare_compiler()


def layout(*, fix: bool) -> bool:
    """Compare every C++ file with ``.clang-format``, or bring it there."""
    files = sorted(str(path) for suffix in ("*.cpp", "*.hpp", "*.h") for path in SOURCES.rglob(suffix))
    how = ("-i",) if fix else ("--dry-run", "-Werror")
    return run("clang-format", *how, *files)


def compiles_without_warning() -> bool:
    """Configure and build with ``POWERLAB_WERROR``; the folder is kept, for the next check and for tests of kernels."""
    use_backend_compiler()
    asked = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    nanobind = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    configured = run(
        "cmake",
        *("-S", ".", "-B", str(BUILD), "-G", "Ninja", "--log-level=WARNING"),
        "-DCMAKE_BUILD_TYPE=Release",
        "-DPOWERLAB_WERROR=ON",
        "-DPOWERLAB_PYTHON=ON",
        "-DPOWERLAB_KERNEL_TEST=ON",
        f"-Dnanobind_DIR={nanobind}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    return configured and run("cmake", "--build", str(BUILD), "--", "--quiet")


def main() -> int:
    """Run the checks and return 0 where all of them passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", action="store_true", help="rewrite the files instead of checking them")
    args = parser.parse_args()
    if args.format:
        return 0 if layout(fix=True) else 1
    return 0 if layout(fix=False) and compiles_without_warning() else 1


if __name__ == "__main__":
    sys.exit(main())
