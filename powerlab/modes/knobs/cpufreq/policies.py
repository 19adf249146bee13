"""CPU clock domains as cpufreq shows them (kernel, admin-guide/pm/cpufreq): one directory per cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io.files import read_value
from powerlab.modes.io.frequency_range import FrequencyRange, read_range
from powerlab.sysroot import Sysroot

DIRECTORY = "/sys/devices/system/cpu/cpufreq"
_STEP_KHZ = 100_000
_CLOCK = re.compile(r"[0-9]{1,8}")
"""In kHz, so up to 100 GHz: what is longer is a damaged file's, and would be stepped through for ever."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One cluster: cores that share a clock; ``name`` is ``policyN`` after its first core."""

    sysroot: Sysroot
    name: str

    def path(self, file: str) -> str:
        """Return the path of one of its files."""
        return f"{DIRECTORY}/{self.name}/{file}"

    def value(self, file: str) -> str:
        """Return what a file says, empty where it cannot be read."""
        try:
            return read_value(self.sysroot, self.path(file))
        except OSError:
            return ""

    def limits(self) -> FrequencyRange:
        """Return the limits of its clock in kHz.

        Raises:
            PowerlabError: they cannot be read.
        """
        try:
            return read_range(self.sysroot, self.path("scaling_min_freq"), self.path("scaling_max_freq"))
        except (OSError, ValueError) as error:
            raise PowerlabError(f"the clock limits in {DIRECTORY}/{self.name} cannot be read ({error}).") from None

    def clocks(self) -> list[int]:
        """Return the clocks it can run at in kHz, lowest first; none where the driver says nothing.

        Drivers without a table take any clock between two limits: those are shown in steps of 100 MHz, which is what
        the multiplier of an x86 core counts.
        """
        table = [word for word in self.value("scaling_available_frequencies").split() if _CLOCK.fullmatch(word)]
        if table:
            return sorted(int(clock) for clock in table)
        ends = [self.value(f"cpuinfo_{end}_freq") for end in ("min", "max")]
        if not all(_CLOCK.fullmatch(end) for end in ends) or int(ends[0]) > int(ends[1]):
            return []
        low, high = (int(end) for end in ends)
        return sorted({low, *range(low - low % _STEP_KHZ + _STEP_KHZ, high, _STEP_KHZ), high})

    def online(self) -> bool:
        """Say whether one of its cores is; the kernel keeps the directory of a cluster that is offline."""
        for core in self.value("related_cpus").split():
            try:
                if read_value(self.sysroot, f"/sys/devices/system/cpu/cpu{core}/online") == "1":
                    return True
            except FileNotFoundError:
                return True  # a core that cannot be taken offline has no such file
            except OSError:
                continue  # some phones keep the file from users: the other cores of the cluster tell
        return False


def online_policies(sysroot: Sysroot) -> list[Policy]:
    """Return the clusters with a core online, in core order."""
    names = (path.rpartition("/")[2] for path in sysroot.glob(f"{DIRECTORY}/policy[0-9]*"))
    numbers = sorted(int(number) for name in names if (number := name.removeprefix("policy")).isdecimal())
    return [policy for number in numbers if (policy := Policy(sysroot, f"policy{number}")).online()]
