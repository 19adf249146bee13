"""Run a Jetson's ``jetson_clocks``, and check from the clocks whether it took effect.

What the program does, as its text in JetPack 4 to 6 says: it raises the lower limit of every CPU and GPU clock to the
upper one, forbids the CPU's idle states and the GPU's power gating, and pins the memory clock. ``--store FILE`` keeps
what it will change as lines ``path:value`` and asks before it replaces a file, ``--restore FILE`` puts them back.
"""

from __future__ import annotations

import re

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io.programs import run_program
from powerlab.modes.knobs.cpufreq.knob import CpuFreq
from powerlab.modes.knobs.gpu_devfreq import GpuDevfreq
from powerlab.sysroot import Sysroot

PROGRAM = "/usr/bin/jetson_clocks"
STORE = "/run/powerlab/jetson_clocks.store"
"""Gone after a boot, and so is what the program did."""
TIMEOUT_S = 60.0
_OTHER_KNOBS = re.compile(r"/cpu[0-9]+/online:|/cpufreq/|/devfreq")


def is_pinned(sysroot: Sysroot) -> bool:
    """Say whether every CPU and GPU clock has its lower limit at the upper one; the memory clock is root's to see."""
    limits = {setting.target: setting.value for knob in (CpuFreq(), GpuDevfreq()) for setting in knob.read(sysroot)}
    pairs = [
        (value, limits.get(target.replace(".max_", ".min_"))) for target, value in limits.items() if ".max_" in target
    ]
    return bool(pairs) and all(high == low for high, low in pairs)


def pin_clocks(sysroot: Sysroot) -> None:
    """Have every clock pinned, after the program has stored what it changes.

    Raises:
        PowerlabError: the clocks are not pinned afterwards, with the program's own words, or it cannot be run.
    """
    store = sysroot.path(STORE)
    try:
        if not is_pinned(sysroot):  # what is pinned already has nothing of its own to go back to
            store.parent.mkdir(parents=True, exist_ok=True)
            store.unlink(missing_ok=True)
            run_program(sysroot, PROGRAM, "--store", STORE, timeout_s=TIMEOUT_S)
            _leave_to_other_knobs(sysroot)
    except OSError as error:
        raise PowerlabError(f"{STORE} cannot be written ({error.strerror}); run powerlab as root.") from None
    words = run_program(sysroot, PROGRAM, timeout_s=TIMEOUT_S)
    if not is_pinned(sysroot):
        said = "; ".join(line.strip() for line in words.splitlines() if line.strip()) or "nothing"
        raise PowerlabError(f"jetson_clocks did not pin the clocks; it said: {said}.")


def let_clocks_go(sysroot: Sysroot) -> None:
    """Put back what the program stored; where its file is gone, the other settings and knobs do that alone.

    Raises:
        PowerlabError: the program cannot be run, or its file belongs to somebody else.
    """
    store = sysroot.path(STORE)
    if store.is_file():
        run_program(sysroot, PROGRAM, "--restore", STORE, timeout_s=TIMEOUT_S)
        try:
            store.unlink(missing_ok=True)
        except OSError as error:
            raise PowerlabError(f"{STORE} cannot be removed ({error.strerror}); run powerlab as root.") from None


def _leave_to_other_knobs(sysroot: Sysroot) -> None:
    """Take out of the program's file what knobs record: they may have been set between their record and this file."""
    store = sysroot.path(STORE)
    if store.is_file():
        lines = store.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        store.write_text("".join(line for line in lines if not _OTHER_KNOBS.search(line)), encoding="utf-8")
