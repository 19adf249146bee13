"""The stand-alone kernel test: built natively, and for 64-bit Arm, where it runs under emulation."""

import platform
import subprocess
from pathlib import Path

import pytest

from engine_native.kernel_program import X86_TIERS, tier_object
from requires import require_program

pytestmark = pytest.mark.campaign(minutes=6)  # the kernels are compiled first, for minutes

COMPUTING = {
    *("memcpy", "memmove", "memset", "_GLOBAL_OFFSET_TABLE_"),
    *("exp", "expf", "expm1f", "log", "logf", "log1pf", "pow", "powf", "fmodf", "erff"),
    *("sinf", "cosf", "tanf", "asinf", "acosf", "atanf"),
    *("sinhf", "coshf", "tanhf", "asinhf", "acoshf", "atanhf"),
}

ARM_CORES = ("cortex-a57", "neoverse-n1", "max")
"""Of ARMv8.0 (Jetson Nano), 8.2 (Altra), and everything the emulator knows, SVE among it: one for each set of
instructions, for the emulator runs two cores that have the same ones alike."""


def checked(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert ", 0 wrong" in done.stdout
    return done.stdout


def test_kernels_of_every_tier_here(kernels):
    from powerlab.engine.target.tiers import available_tiers

    output = checked(kernels)
    for tier in available_tiers():
        assert f"{tier.name}: " in output


def test_a_tier_that_does_not_exist_is_explained(kernels):
    done = subprocess.run([kernels, "mmx"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert '"mmx" is not one this processor can run' in done.stderr


@pytest.mark.parametrize("core", ARM_CORES)
def test_kernels_of_64_bit_arm(arm_kernels, core):
    emulator = require_program("qemu-aarch64", "qemu-user")
    assert "neon: " in checked(emulator, "-cpu", core, "-L", "/usr/aarch64-linux-gnu", arm_kernels)


def test_kernels_ask_nobody_for_memory(kernels):
    """A kernel calls no function but a few that only compute or copy; the plan's own runs are counted natively."""
    nm = require_program("nm", "binutils")
    for path in kernels.parent.rglob("tier.cpp.o"):
        symbols = subprocess.run([nm, "-u", path], capture_output=True, text=True, check=True).stdout.split()
        assert set(symbols) - {"U"} <= COMPUTING


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernel files of x86-64 only")
def test_tiers_share_no_code(kernels):
    """A function in two tiers' files would be kept once, with instructions that another processor lacks."""
    nm = require_program("nm", "binutils")
    for path in [tier_object(kernels.parent, tier) for tier in X86_TIERS]:
        symbols = subprocess.run([nm, "-C", path], capture_output=True, text=True, check=True).stdout.splitlines()
        shared = [line for line in symbols if " W " in line or " V " in line or " u " in line]
        assert shared == []
        assert [line for line in symbols if " D powerlab::engine::" in line and "::kTable" in line]
