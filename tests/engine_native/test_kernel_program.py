"""The stand-alone kernel test: built natively, and for 64-bit Arm, where it runs under emulation."""

import ctypes
import platform
import re
import subprocess
from pathlib import Path

import pytest

from engine_native.kernel_program import X86_TIERS, tier_object
from requires import needs_instructions, require_program

pytestmark = pytest.mark.campaign

COMPUTING = {
    *("memcpy", "memmove", "memset", "_GLOBAL_OFFSET_TABLE_"),
    *("exp", "expf", "expm1f", "log", "logf", "log1pf", "pow", "powf", "fmodf", "erff"),
    *("sinf", "cosf", "tanf", "asinf", "acosf", "atanf"),
    *("sinhf", "coshf", "tanhf", "asinhf", "acoshf", "atanhf"),
}

ARM_CORES = {
    "cortex-a57": {"neonbytes"},
    "neoverse-n1": {"neonbytes", "neon_dotprod", "neon_fp16"},
    "max": {"neonbytes", "neon_dotprod", "neon_i8mm", "neon_bf16", "neon_fp16"},
}
"""Of ARMv8.0 (Jetson Nano), 8.2 (Altra), and everything the emulator knows, SVE among it: one for each set of
instructions, for the emulator runs two cores that have the same ones alike. With the kernels in low precision that each
runs: all others are the first one's."""


def checked(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert ", 0 wrong" in done.stdout
    return done.stdout


def tiles_are_granted() -> bool:
    """Ask Linux for the state of AMX, which a container may be refused (arch_prctl, ARCH_REQ_XCOMP_PERM)."""
    return platform.machine() == "x86_64" and ctypes.CDLL(None).syscall(158, 0x1023, 18) == 0


LOW_PRECISION = {
    "amx_int8": "avx512: avx512amx",
    "avx512_vnni": "avx512: avx512vnni",
    "amx_bf16": "avx512: avx512amxbf16",
    "avx512_bf16": "avx512: avx512bf16",
    "avx512_fp16": "avx512: avx512fp16",
    "avx_vnni": "avx2: avxvnni",
    "asimddp": "neon: neon_dotprod",
    "asimdhp": "neon: neon_fp16",
    "i8mm": "neon: neon_i8mm",
    "bf16": "neon: neon_bf16",
}
"""What Linux calls an instruction set → the kernels that need it, as the program says which of them it has run."""


def test_kernels_of_every_tier_here(kernels):
    from powerlab.engine.target.tiers import available_tiers

    output = checked(kernels)
    for tier in available_tiers():
        assert f"{tier.name}: " in output
    known = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split()) - (
        set() if tiles_are_granted() else {"amx_int8", "amx_bf16"}
    )
    unlike = {name for name, line in LOW_PRECISION.items() if (name in known) != (f"{line}: " in output)}
    assert unlike == set(), output
    models = {f"{name}: " in output for name in ("amx_model", "amx_pairs_model", "halves_model")}
    assert models == {platform.machine() == "x86_64"}, output


def test_a_tier_that_does_not_exist_is_explained(kernels):
    done = subprocess.run([kernels, "mmx"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert '"mmx" is not one this processor can run' in done.stderr


@pytest.mark.campaign(minutes=5)  # its kernels are compiled first, for minutes
@pytest.mark.parametrize("core", ARM_CORES)
def test_kernels_of_64_bit_arm(arm_kernels, core):
    emulator = require_program("qemu-aarch64", "qemu-user")
    words = () if core == next(iter(ARM_CORES)) else ("low-precision",)
    output = checked(emulator, "-cpu", core, "-L", "/usr/aarch64-linux-gnu", arm_kernels, *words)
    assert set(re.findall(r"^neon: (\w+): ", output, re.MULTILINE)) == ARM_CORES[core]


def test_kernels_ask_nobody_for_memory(kernels):
    """A kernel calls no function but a few that only compute or copy; the plan's own runs are counted natively."""
    nm = require_program("nm", "binutils")
    for path in kernels.parent.rglob("tier.cpp.o"):
        symbols = subprocess.run([nm, "-u", path], capture_output=True, text=True, check=True).stdout.split()
        assert set(symbols) - {"U"} <= COMPUTING


@needs_instructions(platform.machine() == "x86_64", "kernels of x86-64")
def test_tiers_share_no_code(kernels):
    """A function in two tiers' files would be kept once, with instructions that another processor lacks."""
    nm = require_program("nm", "binutils")
    for path in [tier_object(kernels.parent, tier) for tier in X86_TIERS]:
        symbols = subprocess.run([nm, "-C", path], capture_output=True, text=True, check=True).stdout.splitlines()
        shared = [line for line in symbols if " W " in line or " V " in line or " u " in line]
        assert shared == []
        assert [line for line in symbols if " D powerlab::engine::" in line and "::kTable" in line]
