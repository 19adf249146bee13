"""The knob ``nvpmodel``: the power modes NVIDIA publishes for each Jetson."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.modes.io.frequency_range import FrequencyRange, read_range, write_range
from powerlab.modes.io.permissions import Permission
from powerlab.modes.knobs.nvpmodel.conf import NvpmodelConf, parse_conf
from powerlab.modes.knobs.nvpmodel.modes import KNOB, MODE_TARGET, vendor_modes
from powerlab.modes.knobs.nvpmodel.permissions import PERMISSIONS
from powerlab.modes.knobs.nvpmodel.program import PROGRAM, query, set_mode
from powerlab.sysroot import Sysroot

CONF = "/etc/nvpmodel.conf"
_LOW, _HIGH = "MIN_FREQ", "MAX_FREQ"
_CPUFREQ = "/cpufreq/"


class Nvpmodel:
    """Its settings are the mode, and each file the modes write.

    The files are recorded one by one because a device may have been changed by hand since its mode was set, or be in no
    mode of the table at all: going back to the mode alone would not bring back what was there. The CPU clocks are left
    to the knob ``cpufreq``.
    """

    name = KNOB
    meaning = "the power modes NVIDIA defines for this board"
    forms: tuple[Form, ...] = ()
    permissions: tuple[Permission, ...] = PERMISSIONS

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether there is an nvpmodel, whether its table can be read, and whether it can be used."""
        if not self._present(sysroot):
            return probing.absent(self.name, "no nvpmodel here: only NVIDIA Jetson boards have it")
        try:
            conf = self._conf(sysroot)
            now = query(sysroot)
        except PowerlabError as error:
            return probing.broken(self.name, str(error), "fix what the text says, then ask again")
        state = f"in {now.name or 'no mode of the table'}"
        if not any(can_write(sysroot, path) for path in self._paths(conf)):
            return probing.denied(self.name, state)
        return probing.available(self.name, f"{state}; {len(conf.models)} modes in {CONF}")

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return every mode of the device's own table."""
        return vendor_modes(sysroot, self._conf(sysroot))

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode of that name."""
        return next((mode for mode in self.modes(sysroot) if mode.name == name), None)

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return the mode, where the device is in one of the table, and every file the modes write."""
        if not self._present(sysroot):
            return ()
        conf = self._conf(sysroot)
        now = query(sysroot)
        known = any(model.id == now.id for model in conf.models)
        return [*([self._setting(MODE_TARGET, str(now.id))] if known else []), *self._read_files(sysroot, conf)]

    def _read_files(self, sysroot: Sysroot, conf: NvpmodelConf) -> Iterator[Setting]:
        for name, argument in _targets(conf):
            paths = conf.parameters[name].paths
            try:
                if argument:
                    yield self._setting(f"{name}.{argument}", read_value(sysroot, paths[argument]))
                else:
                    yield self._setting(name, str(read_range(sysroot, paths[_LOW], paths[_HIGH])))
            except (OSError, ValueError):
                continue  # an argument this kernel does not have, or that can only be written: nothing to restore

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Set the mode, or one of the files."""
        conf = self._conf(sysroot)
        if setting.target == MODE_TARGET:
            model = next((model for model in conf.models if str(model.id) == setting.value), None)
            if model is None:
                raise PowerlabError(f"{CONF} has no mode number {setting.value}; `powerlab modes` lists what it has.")
            set_mode(sysroot, model.id, model.name)
            return
        name, _, argument = setting.target.partition(".")
        if (name, argument) not in _targets(conf):
            raise PowerlabError(f"{CONF} no longer defines {setting.target}; it cannot be set back to {setting.value}.")
        paths = conf.parameters[name].paths
        if argument:
            write_value(sysroot, paths[argument], setting.value)
        else:
            write_range(sysroot, paths[_LOW], paths[_HIGH], FrequencyRange.parse(setting.value))

    def survives_reboot(self, setting: Setting) -> bool:
        """The mode does, in ``/var/lib/nvpmodel/status``; the files are written anew from it at each boot."""
        return setting.target == MODE_TARGET

    def _present(self, sysroot: Sysroot) -> bool:
        return sysroot.path(CONF).is_file() and sysroot.path(PROGRAM).is_file()

    def _conf(self, sysroot: Sysroot) -> NvpmodelConf:
        try:
            return parse_conf(sysroot.read(CONF))
        except OSError as error:
            raise PowerlabError(f"{CONF} cannot be read ({error.strerror}).") from None

    def _paths(self, conf: NvpmodelConf) -> Iterator[str]:
        return (path for parameter in conf.parameters.values() for path in parameter.paths.values())

    def _setting(self, target: str, value: str) -> Setting:
        return Setting(knob=self.name, target=target, value=value)


def _targets(conf: NvpmodelConf) -> list[tuple[str, str]]:
    """Return (parameter, argument) of each file the modes write; a clock's two limits are one target without argument.

    Files come first, so that cores are online before their clocks are set.
    """
    written = {key for model in conf.models for key in model.values}
    files, clocks = [], []
    for name, parameter in conf.parameters.items():
        paths = {key: path for key, path in parameter.paths.items() if _CPUFREQ not in path and (name, key) in written}
        if _LOW in paths and _HIGH in paths:
            clocks.append((name, ""))
            paths = {key: path for key, path in paths.items() if key not in {_LOW, _HIGH}}
        files += [(name, key) for key in paths]
    return files + clocks
