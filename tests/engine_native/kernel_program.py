"""Building the stand-alone kernel test, natively or for another processor."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

from requires import missing, require_program

ROOT = Path(__file__).parents[2]
ENVIRONMENT = Path(sysconfig.get_path("scripts"))

X86_TIERS = ("sse4", "avx2", "avx512")

ARM_COMPILER = ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")
"""The cross compiler and its Debian package."""


def require_compiler() -> None:
    """Skip the test where there is no C++ compiler, or fail it in CI."""
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        missing("no C++ compiler is installed (Debian: apt install g++)")


def arm_options() -> tuple[str, ...]:
    """Return what makes CMake build for 64-bit Arm."""
    compiler = require_program(*ARM_COMPILER)
    return ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={compiler}")


def build(folder: Path, *options: str) -> Path:
    """Build the program in a folder, every warning an error, and return where it is."""
    cmake, ninja = _tool("cmake", "cmake"), _tool("ninja", "ninja-build")
    settings = ("-DPOWERLAB_PYTHON=OFF", "-DPOWERLAB_KERNEL_TEST=ON", "-DPOWERLAB_WERROR=ON", *options)
    configure = [cmake, "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", *settings]
    for command in (configure, [cmake, "--build", folder, "--target", "kernel_test"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder / "kernel_test"


def _tool(name: str, package: str) -> str:
    """Return the system's program, as ``make check`` takes it, or else that of the environment.

    Versions of CMake write flags in other orders, so another one would compile all that is compiled already once more.
    """
    return shutil.which(name) or shutil.which(name, path=ENVIRONMENT) or require_program(name, package)


def tier_object(folder: Path, tier: str) -> Path:
    """Return the compiled kernels of a tier."""
    (found,) = (folder / "CMakeFiles" / f"powerlab_tier_{tier}.dir").rglob("tier.cpp.o")
    return found


def byte_object(folder: Path, instructions: str) -> Path:
    """Return the compiled kernels on bytes of an instruction set."""
    (found,) = (folder / "CMakeFiles" / f"powerlab_bytes_{instructions}.dir").rglob("bytes.cpp.o")
    return found


def pair_object(folder: Path, instructions: str) -> Path:
    """Return the compiled kernels on 16-bit floats of an instruction set."""
    (found,) = (folder / "CMakeFiles" / f"powerlab_pairs_{instructions}.dir").rglob("pairs.cpp.o")
    return found
