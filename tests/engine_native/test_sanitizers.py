"""The kernel test under sanitizers: no access out of bounds, nothing leaked, nothing undefined, no data race."""

import os
import shutil
import subprocess

import pytest

from engine_native.kernel_program import build, require_compiler
from powerlab.engine.target.tiers import available_tiers

pytestmark = pytest.mark.campaign(minutes=8)

OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1",
    "TSAN_OPTIONS": "halt_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
FIXED_ADDRESSES = shutil.which("setarch")
"""The thread sanitizer of older compilers cannot live with all addresses that newer kernels give out at random."""


def run(program, *arguments):
    before = [FIXED_ADDRESSES, "--addr-no-randomize"] if FIXED_ADDRESSES else []
    return subprocess.run(
        [*before, program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **OPTIONS},
        timeout=1200,
    )


@pytest.mark.parametrize("sanitizer", ["address", "undefined", "thread"])
def test_the_kernel_test_is_clean(tmp_path, sanitizer):
    """What differs between tiers is what they read and write: the widest one masks, the test's own odd one does not.

    What is undefined stands in the lines that all tiers are compiled from, and threads are the same for every
    instruction set: the narrowest is compiled soonest.
    """
    require_compiler()
    widest, narrowest = available_tiers()[0], available_tiers()[-1]
    options = [f"-DPOWERLAB_TIERS={(widest if sanitizer == 'address' else narrowest).name}"]
    words = ["threads"] if sanitizer == "thread" else []
    done = run(build(tmp_path, f"-DPOWERLAB_SANITIZE={sanitizer}", *options), *words)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert ", 0 wrong" in done.stdout
    assert "Sanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
