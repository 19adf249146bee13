"""The stand-alone kernel test: built natively, and for 64-bit Arm, where it runs under emulation."""

import platform
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from requires import missing, require_program

ROOT = Path(__file__).parents[2]
ENVIRONMENT = Path(sysconfig.get_path("scripts"))


def build(folder: Path, *options: str) -> Path:
    cmake = shutil.which("cmake", path=ENVIRONMENT) or require_program("cmake", "cmake")
    ninja = shutil.which("ninja", path=ENVIRONMENT) or require_program("ninja", "ninja-build")
    settings = ("-DPOWERLAB_PYTHON=OFF", "-DPOWERLAB_KERNEL_TEST=ON", "-DPOWERLAB_WERROR=ON", *options)
    configure = [cmake, "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", *settings]
    for command in (configure, [cmake, "--build", folder]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder / "kernel_test"


def checked(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert ", 0 wrong" in done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def native_program(tmp_path_factory) -> Path:
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        missing("no C++ compiler is installed (Debian: apt install g++)")
    return build(tmp_path_factory.mktemp("kernels"))


def test_kernels_of_every_tier_here(native_program):
    from powerlab.engine.tiers import available_tiers

    output = checked(native_program)
    for tier in available_tiers():
        assert f"{tier.name}: " in output


def test_a_tier_that_does_not_exist_is_explained(native_program):
    done = subprocess.run([native_program, "mmx"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert '"mmx" is not one this processor can run' in done.stderr


def test_kernels_of_64_bit_arm(tmp_path):
    compiler = require_program("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")
    emulator = require_program("qemu-aarch64", "qemu-user")
    system = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64")
    program = build(tmp_path, *system, f"-DCMAKE_CXX_COMPILER={compiler}")
    assert "neon: " in checked(emulator, "-L", "/usr/aarch64-linux-gnu", program)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernel files of x86-64 only")
def test_tiers_share_no_code(native_program):
    """A function in two tiers' files would be kept once, with instructions that another processor lacks."""
    nm = require_program("nm", "binutils")
    objects = sorted(native_program.parent.rglob("tier.cpp.o"))
    assert len(objects) == 3
    for path in objects:
        symbols = subprocess.run([nm, "-C", path], capture_output=True, text=True, check=True).stdout.splitlines()
        shared = [line for line in symbols if " W " in line or " V " in line or " u " in line]
        assert shared == []
        assert [line for line in symbols if " D powerlab::engine::" in line and "::kTable" in line]
