"""The knob ``cpufreq``: governor, clock limits and energy preference of each CPU cluster.

Source: kernel, admin-guide/pm/cpufreq, intel_pstate and amd-pstate. Clocks are in kHz.
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, write_value
from powerlab.modes.io.frequency_range import write_high, write_low
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.knobs.cpufreq import modes as cpufreq_modes
from powerlab.modes.knobs.cpufreq.modes import FILES, GOVERNOR, HIGH, LOW, PREFERENCE
from powerlab.modes.knobs.cpufreq.policies import DIRECTORY, Policy, online_policies
from powerlab.sysroot import Sysroot

_SPEED = "setspeed_khz"
_FILES = {**FILES, _SPEED: "scaling_setspeed"}
_POLICY = rf"{DIRECTORY}/policy[0-9]{{1,4}}"


class CpuFreq:
    """Its settings are ``policyN.governor``, ``.epp``, ``.max_khz`` and ``.min_khz`` of every online cluster.

    The energy preference exists with the drivers intel_pstate and amd-pstate. The governor ``userspace`` has one more,
    ``.setspeed_khz``: started anew it holds whatever clock it finds.
    """

    name = cpufreq_modes.KNOB
    meaning = "governor and clock limits of the CPU"
    forms: tuple[Form, ...] = (
        Form(name="governor=X", meaning="the kernel's governor X on every cluster"),
        Form(name="cpu-max=NkHz", meaning="CPU clocks up to N, rounded down to one that each cluster has"),
        Form(name="cpu-min=NkHz", meaning="CPU clocks from N, rounded up to one that each cluster has"),
        Form(name="epp=X", meaning="energy performance preference X (Intel and AMD; not with governor=performance)"),
    )
    permissions: tuple[Permission, ...] = (
        FilePermission(path=rf"{_POLICY}/scaling_governor", values=r"[a-z][a-z_]{0,14}"),
        FilePermission(path=rf"{_POLICY}/energy_performance_preference", values=r"[a-z][a-z_]{0,24}|[0-9]{1,3}"),
        FilePermission(
            path=rf"{_POLICY}/scaling_(min_freq|max_freq|setspeed)",
            values=r"[0-9]{1,9}",
            between=("cpuinfo_min_freq", "cpuinfo_max_freq"),
        ),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether the kernel can scale the clocks, and whether this user may set them."""
        policies = online_policies(sysroot)
        if not policies:
            return probing.absent(self.name, "the kernel scales no CPU clock here (virtual machines mostly cannot)")
        governors = {policy.value(FILES[GOVERNOR]) for policy in policies}
        detail = f"{len(policies)} cluster{'s' * (len(policies) > 1)}, governor {', '.join(sorted(governors))}"
        if not all(can_write(sysroot, policy.path(FILES[GOVERNOR])) for policy in policies):
            return probing.denied(self.name, detail)
        return probing.available(self.name, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return modes for the usual governors and preferences, and caps of the clock at 25, 50 and 75 %."""
        return cpufreq_modes.offered(online_policies(sysroot))

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode of that name; a limit between two clocks is rounded, so that it holds."""
        return cpufreq_modes.parse(online_policies(sysroot), name)

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return governor, preference and limits of every cluster with a core online."""
        settings = []
        for policy in online_policies(sysroot):
            limits = policy.limits()
            values = {part: policy.value(FILES[part]) for part in (GOVERNOR, PREFERENCE)}
            values |= {HIGH: str(limits.high), LOW: str(limits.low)}
            if values[GOVERNOR] == "userspace" and (speed := policy.value(_FILES[_SPEED])).isdecimal():
                values[_SPEED] = speed
            settings += [
                Setting(knob=self.name, target=f"{policy.name}.{part}", value=value)
                for part, value in values.items()
                if value
            ]
        return settings

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Make one setting of one cluster; a limit takes the opposite one with it where that is in the way."""
        name, _, part = setting.target.partition(".")
        policy = Policy(sysroot, name)
        if part not in _FILES or "/" in name:
            raise PowerlabError(f"cpufreq has no setting {setting.target!r}; it has policyN.{', .'.join(_FILES)}.")
        if part == PREFERENCE:
            self._write_preference(policy, setting.value)
        elif part in {GOVERNOR, _SPEED} or not setting.value.isdecimal():
            write_value(sysroot, policy.path(_FILES[part]), setting.value)
        else:
            write = write_high if part == HIGH else write_low
            write(sysroot, policy.path(FILES[LOW]), policy.path(FILES[HIGH]), int(setting.value))

    def _write_preference(self, policy: Policy, value: str) -> None:
        if policy.value(FILES[PREFERENCE]) == value:
            return  # under the performance governor even the value it has is refused
        if policy.value(FILES[GOVERNOR]) == "performance":
            raise PowerlabError(
                f"epp={value} cannot be set while the governor is performance, which keeps the preference at its own;"
                f" name another governor first, for example governor=powersave+epp={value}."
            )
        write_value(policy.sysroot, policy.path(FILES[PREFERENCE]), value)

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the kernel starts with its own governor and the hardware's limits."""
        return False
