"""Building and running the kernel test under a sanitizer. Each takes minutes, so each test has a file of its own."""

import os
import shutil
import subprocess
from pathlib import Path

from engine_native.kernel_program import build, require_compiler

OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1",
    "TSAN_OPTIONS": "halt_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
FIXED_ADDRESSES = shutil.which("setarch")
"""The thread sanitizer of older compilers cannot live with all addresses that newer kernels give out at random."""


def assert_clean(folder: Path, sanitizer: str, tier: str, *words: str) -> None:
    """Build a tier's kernel test under a sanitizer, run it with these words, and check that neither complains."""
    require_compiler()
    program = build(folder, f"-DPOWERLAB_SANITIZE={sanitizer}", f"-DPOWERLAB_TIERS={tier}")
    before = [FIXED_ADDRESSES, "--addr-no-randomize"] if FIXED_ADDRESSES else []
    done = subprocess.run(
        [*before, program, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **OPTIONS},
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert ", 0 wrong" in done.stdout
    assert "Sanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
