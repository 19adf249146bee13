"""The knob ``cpufreq``: governor and clock limits of each CPU cluster (kernel, admin-guide/pm/cpufreq)."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.domain.power import Availability
from powerlab.modes.base import KnobProbe
from powerlab.modes.files import can_write, read_value, write_value
from powerlab.modes.frequency_range import FrequencyRange, read_range, write_range
from powerlab.modes.grants import Grant
from powerlab.sysroot import Sysroot

_DIRECTORY = "/sys/devices/system/cpu/cpufreq"
_OFFERED_GOVERNORS = ("powersave", "schedutil", "ondemand", "performance")
_CAP_FRACTIONS = (0.25, 0.5, 0.75)
_STEP_KHZ = 100_000
_GOVERNOR, _RANGE = "governor", "range_khz"


class CpuFreq:
    """Its settings are ``policyN.governor`` and ``policyN.range_khz`` of every cluster with a core online."""

    name = "cpufreq"
    grants: tuple[Grant, ...] = ()

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether the kernel can scale the clocks, and whether this user may set them."""
        policies = self._policies(sysroot)
        if not policies:
            return self._answer(
                Availability.ABSENT, "the kernel scales no CPU clock here (virtual machines mostly cannot)"
            )
        governors = {self._value(sysroot, policy, "scaling_governor") for policy in policies}
        detail = f"{len(policies)} cluster{'s' * (len(policies) > 1)}, governor {', '.join(sorted(governors))}"
        if not all(can_write(sysroot, f"{_DIRECTORY}/{policy}/scaling_governor") for policy in policies):
            remedy = "run powerlab as root (sudo), or in a container with /sys mounted writable"
            return self._answer(Availability.DENIED, f"{detail}; this user may not change it", remedy)
        return self._answer(Availability.AVAILABLE, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return a mode for each usual governor, and caps of the clock at about 25, 50 and 75 % of the highest.

        A cap never raises a limit: those above the present one are left out.
        """
        policies = self._policies(sysroot)
        return [*self._governor_modes(sysroot, policies), *self._cap_modes(sysroot, policies)]

    def _governor_modes(self, sysroot: Sysroot, policies: Sequence[str]) -> list[PowerMode]:
        known = [set(self._value(sysroot, policy, "scaling_available_governors").split()) for policy in policies]
        return [
            PowerMode(
                name=f"governor={governor}",
                settings=tuple(self._setting(policy, _GOVERNOR, governor) for policy in policies),
                origin=ModeOrigin.INVENTED,
                description=f"the kernel's {governor} governor on every cluster, all else as it is",
            )
            for governor in _OFFERED_GOVERNORS
            if policies and all(governor in names for names in known)
        ]

    def _cap_modes(self, sysroot: Sysroot, policies: Sequence[str]) -> list[PowerMode]:
        clocks = {policy: self._clocks(sysroot, policy) for policy in policies}
        ranges = {policy: self._range(sysroot, policy) for policy in policies}
        if not policies or not all(clocks.values()):
            return []
        fastest = max(max(found) for found in clocks.values())
        now = max(found.high for found in ranges.values())
        all_clocks = sorted({clock for found in clocks.values() for clock in found})
        caps = {min(all_clocks, key=lambda clock: abs(clock - share * fastest)) for share in _CAP_FRACTIONS}
        modes = []
        for cap in sorted(cap for cap in caps if cap < now):
            settings = []
            for policy in policies:
                high = min(
                    ranges[policy].high, max((c for c in clocks[policy] if c <= cap), default=min(clocks[policy]))
                )
                limits = FrequencyRange(min(ranges[policy].low, high), high)
                settings.append(self._setting(policy, _RANGE, str(limits)))
            modes.append(
                PowerMode(
                    name=f"cpu-max={cap}kHz",
                    settings=tuple(settings),
                    origin=ModeOrigin.INVENTED,
                    description=f"CPU clocks up to {cap / 1e6:.2f} GHz, all else as it is",
                )
            )
        return modes

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode of that name."""
        return next((mode for mode in self.modes(sysroot) if mode.name == name), None)

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return governor and limits of every cluster with a core online."""
        settings = []
        for policy in self._policies(sysroot):
            if governor := self._value(sysroot, policy, "scaling_governor"):
                settings.append(self._setting(policy, _GOVERNOR, governor))
            settings.append(self._setting(policy, _RANGE, str(self._range(sysroot, policy))))
        return settings

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Set the governor or the limits of one cluster."""
        policy, _, part = setting.target.partition(".")
        directory = f"{_DIRECTORY}/{policy}"
        if part == _GOVERNOR:
            write_value(sysroot, f"{directory}/scaling_governor", setting.value)
        elif part == _RANGE:
            wanted = FrequencyRange.parse(setting.value)
            write_range(sysroot, f"{directory}/scaling_min_freq", f"{directory}/scaling_max_freq", wanted)
        else:
            raise PowerlabError(f"cpufreq has no setting {setting.target!r}; it has policyN.governor and .range_khz.")

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the kernel starts with its own governor and the hardware's limits."""
        return False

    def _policies(self, sysroot: Sysroot) -> list[str]:
        """Return the clusters with a core online, in core order; the kernel keeps an offline cluster's directory."""
        paths = sysroot.glob(f"{_DIRECTORY}/policy[0-9]*")
        names = sorted((path.rpartition("/")[2] for path in paths), key=lambda name: int(name.removeprefix("policy")))
        return [name for name in names if self._is_online(sysroot, name)]

    def _is_online(self, sysroot: Sysroot, policy: str) -> bool:
        cores = self._value(sysroot, policy, "related_cpus").split()
        for core in cores:
            try:
                if read_value(sysroot, f"/sys/devices/system/cpu/cpu{core}/online") == "1":
                    return True
            except FileNotFoundError:
                return True  # a core that cannot be taken off line has no such file
        return False

    def _value(self, sysroot: Sysroot, policy: str, file: str) -> str:
        try:
            return read_value(sysroot, f"{_DIRECTORY}/{policy}/{file}")
        except OSError:
            return ""

    def _range(self, sysroot: Sysroot, policy: str) -> FrequencyRange:
        directory = f"{_DIRECTORY}/{policy}"
        try:
            return read_range(sysroot, f"{directory}/scaling_min_freq", f"{directory}/scaling_max_freq")
        except (OSError, ValueError) as error:
            raise PowerlabError(f"the clock limits in {directory} cannot be read ({error}).") from None

    def _clocks(self, sysroot: Sysroot, policy: str) -> list[int]:
        """Return the clocks a cluster can run at, in kHz; drivers without a table take any between two limits."""
        table = self._value(sysroot, policy, "scaling_available_frequencies").split()
        if table:
            return sorted(int(clock) for clock in table)
        limits = [self._value(sysroot, policy, f"cpuinfo_{end}_freq") for end in ("min", "max")]
        if not all(limit.isdecimal() for limit in limits):
            return []
        low, high = (int(limit) for limit in limits)
        return [low, *range(low - low % _STEP_KHZ + _STEP_KHZ, high, _STEP_KHZ), high]

    def _setting(self, policy: str, part: str, value: str) -> Setting:
        return Setting(knob=self.name, target=f"{policy}.{part}", value=value)

    def _answer(self, availability: Availability, detail: str, remedy: str = "") -> KnobProbe:
        return KnobProbe(knob=self.name, availability=availability, detail=detail, remedy=remedy)
