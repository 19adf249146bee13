"""The knob ``jetson_clocks``: pins every clock of a Jetson to its upper limit, through NVIDIA's program.

What the program does, as its text in JetPack 4 to 6 says: it raises the lower limit of every CPU and GPU clock to the
upper one, forbids the CPU's idle states and the GPU's power gating, and pins the memory clock. ``--store FILE`` keeps
what it will change as lines ``path:value`` and asks before it replaces a file, ``--restore FILE`` puts them back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.cpufreq import CpuFreq
from powerlab.modes.delegating import may_set, set_by_helper
from powerlab.modes.emc_pin import find_pin
from powerlab.modes.files import read_value, write_value
from powerlab.modes.gpu_devfreq import GpuDevfreq
from powerlab.modes.grants import FileGrant, Grant, SettingGrant
from powerlab.modes.programs import run_program
from powerlab.sysroot import Sysroot

MODE = "jetson-clocks"
PROGRAM = "/usr/bin/jetson_clocks"
STORE = "/run/powerlab/jetson_clocks.store"
"""Gone after a boot, and so is what the program did."""
TIMEOUT_S = 60.0
_PINNED, _GATING, _MEMORY, _IDLE = "pinned", "gpu_power_gating", "emc_pin_hz", "idle_disabled"
_CPU = "/sys/devices/system/cpu"
_GATES = ("/sys/devices/platform/gpu.0/railgate_enable", "/sys/devices/gpu.0/railgate_enable")
_OTHER_KNOBS = re.compile(r"/cpu\d+/online:|/cpufreq/|/devfreq")


class JetsonClocks:
    """Its settings are ``pinned``, and what the program changes beside the clocks that other knobs put back.

    Those are recorded here too, so that everything comes back even where the program's own file is gone.
    """

    name = "jetson_clocks"
    meaning = "all clocks of a Jetson pinned to their upper limits"
    forms: tuple[Form, ...] = ()
    grants: tuple[Grant, ...] = (
        SettingGrant(target=_PINNED, values="yes|no"),
        FileGrant(path=rf"{_CPU}/cpu[0-9]{{1,4}}/cpuidle/state[0-9]{{1,2}}/disable", values="[01]"),
        *(FileGrant(path=path, values="[01]") for path in _GATES),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether the program is there and this user may run it."""
        if not _present(sysroot):
            return probing.absent(self.name, "no jetson_clocks here: only NVIDIA Jetson boards have it")
        try:
            detail = f"clocks are {'' if _is_pinned(sysroot) else 'not '}pinned"
        except PowerlabError as error:
            return probing.broken(self.name, str(error), "look into the files it names, or boot the board anew")
        return (
            probing.available(self.name, detail) if may_set(sysroot, self.name) else probing.denied(self.name, detail)
        )

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return the one mode there is."""
        mode = PowerMode(
            name=MODE,
            settings=(Setting(knob=self.name, target=_PINNED, value="yes"),),
            origin=ModeOrigin.VENDOR,
            description="every clock pinned to its upper limit, idle states off, all else as it is",
        )
        return [mode] if _present(sysroot) else []

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode of that name."""
        return next((mode for mode in self.modes(sysroot) if mode.name == name), None)

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return whether the clocks are pinned, and what else the program changes."""
        if not _present(sysroot):
            return []
        values = {_PINNED: "yes" if _is_pinned(sysroot) else "no"}
        for directory in sysroot.glob(f"{_CPU}/cpu[0-9]*/cpuidle"):
            states = [_value(sysroot, path) for path in _idle_files(sysroot, directory)]
            if states and all(states):
                values[f"{directory.split('/')[-2]}.{_IDLE}"] = ",".join(states)
        gate = _gate(sysroot)
        pin = find_pin(sysroot)
        values |= {_GATING: _value(sysroot, gate) if gate else "", _MEMORY: (pin.read(sysroot) if pin else None) or ""}
        return [Setting(knob=self.name, target=target, value=value) for target, value in values.items() if value]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Pin all clocks or let them go, or put one of the other settings back."""
        gate, pin = _gate(sysroot), find_pin(sysroot)
        core, _, part = setting.target.partition(".")
        if setting.target == _PINNED:
            if not set_by_helper(sysroot, setting):
                (_pin if setting.value == "yes" else _let_go)(sysroot)
        elif setting.target == _GATING and gate:
            write_value(sysroot, gate, setting.value)
        elif setting.target == _MEMORY and pin:
            pin.write(sysroot, setting.value)
        elif part == _IDLE and re.fullmatch(r"cpu[0-9]+", core):
            files = _idle_files(sysroot, f"{_CPU}/{core}/cpuidle")
            for path, value in zip(files, setting.value.split(","), strict=False):
                write_value(sysroot, path, value)
        else:
            raise PowerlabError(f"jetson_clocks has no setting {setting.target!r} here; it has {_PINNED} = yes or no.")

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the board starts with its mode's limits."""
        return False


def _pin(sysroot: Sysroot) -> None:
    store = sysroot.path(STORE)
    try:
        if not _is_pinned(sysroot):  # what is pinned already has nothing of its own to go back to
            store.parent.mkdir(parents=True, exist_ok=True)
            store.unlink(missing_ok=True)
            run_program(sysroot, PROGRAM, "--store", STORE, timeout_s=TIMEOUT_S)
            _leave_to_other_knobs(sysroot)
    except OSError as error:
        raise PowerlabError(f"{STORE} cannot be written ({error.strerror}); run powerlab as root.") from None
    words = run_program(sysroot, PROGRAM, timeout_s=TIMEOUT_S)
    if not _is_pinned(sysroot):
        said = "; ".join(line.strip() for line in words.splitlines() if line.strip()) or "nothing"
        raise PowerlabError(f"jetson_clocks did not pin the clocks; it said: {said}.")


def _let_go(sysroot: Sysroot) -> None:
    """Put back what the program stored; where its file is gone, the other settings and knobs do that alone."""
    store = sysroot.path(STORE)
    if store.is_file():
        run_program(sysroot, PROGRAM, "--restore", STORE, timeout_s=TIMEOUT_S)
        store.unlink(missing_ok=True)


def _leave_to_other_knobs(sysroot: Sysroot) -> None:
    """Take out of the program's file what knobs record: they may have been set between their record and this file."""
    store = sysroot.path(STORE)
    if store.is_file():
        lines = store.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        store.write_text("".join(line for line in lines if not _OTHER_KNOBS.search(line)), encoding="utf-8")


def _present(sysroot: Sysroot) -> bool:
    return sysroot.path(PROGRAM).is_file()


def _is_pinned(sysroot: Sysroot) -> bool:
    """Say whether every CPU and GPU clock has its lower limit at the upper one; the memory clock is root's to see."""
    limits = {setting.target: setting.value for knob in (CpuFreq(), GpuDevfreq()) for setting in knob.read(sysroot)}
    pairs = [
        (value, limits.get(target.replace(".max_", ".min_"))) for target, value in limits.items() if ".max_" in target
    ]
    return bool(pairs) and all(high == low for high, low in pairs)


def _idle_files(sysroot: Sysroot, directory: str) -> list[str]:
    paths = sysroot.glob(f"{directory}/state[0-9]*/disable")
    return sorted(paths, key=lambda path: int(re.findall(r"state(\d+)/", path)[0]))


def _gate(sysroot: Sysroot) -> str | None:
    return next((path for path in _GATES if sysroot.path(path).is_file()), None)


def _value(sysroot: Sysroot, path: str) -> str:
    try:
        return read_value(sysroot, path)
    except OSError:
        return ""
