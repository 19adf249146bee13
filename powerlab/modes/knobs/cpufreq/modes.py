"""The modes of the knob ``cpufreq``: settings of a governor, a clock limit or an energy preference."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes.knobs.cpufreq.policies import Policy
from powerlab.modes.mode_value import text_of, whole_of

KNOB = "cpufreq"
GOVERNOR, HIGH, LOW, PREFERENCE = "governor", "max_khz", "min_khz", "epp"
FILES = {
    GOVERNOR: "scaling_governor",
    PREFERENCE: "energy_performance_preference",
    HIGH: "scaling_max_freq",
    LOW: "scaling_min_freq",
}
"""A cluster's settings and their files, in the order in which they are written back."""
_OFFERED_GOVERNORS = ("powersave", "schedutil", "ondemand", "performance")
_CAP_FRACTIONS = (0.25, 0.5, 0.75)


def offered(policies: Sequence[Policy]) -> list[PowerMode]:
    """Return a mode for each usual governor and preference, and caps at about 25, 50 and 75 % of the highest clock.

    A cap that would raise the limit of a cluster, or lower none, is left out.
    """
    modes = [_everywhere(policies, GOVERNOR, name) for name in _OFFERED_GOVERNORS if name in _governors(policies)]
    if policies and all(policy.value(FILES[GOVERNOR]) != "performance" for policy in policies):
        modes += [_everywhere(policies, PREFERENCE, name) for name in _preferences(policies)]
    clocks = sorted({clock for policy in policies for clock in policy.clocks()})
    if not clocks or not all(policy.clocks() for policy in policies):
        return modes
    now = [policy.limits().high for policy in policies]
    for cap in sorted({min(clocks, key=lambda clock: abs(clock - share * clocks[-1])) for share in _CAP_FRACTIONS}):
        then = [_not_above(policy, cap) for policy in policies]
        if all(high <= limit for high, limit in zip(then, now, strict=True)) and then != now:
            modes.append(_limited(policies, f"cpu-max={cap}kHz", HIGH, cap))
    return modes


def parse(policies: Sequence[Policy], name: str) -> PowerMode | None:
    """Return the mode of that name, None where it is none of cpufreq's.

    Raises:
        PowerlabError: it is one, and impossible with these clusters.
    """
    for part, key, known in ((GOVERNOR, "governor", _governors), (PREFERENCE, "epp", _preferences)):
        value = text_of(name, key)
        if value is not None:
            if value not in known(policies):
                has = ", ".join(known(policies))
                why = f"choose from what every cluster has ({has})" if has else "this CPU's driver has no such choice"
                raise PowerlabError(f"{name!r} cannot be set: {why}.")
            return _everywhere(policies, part, value)
    for part, key in ((HIGH, "cpu-max"), (LOW, "cpu-min")):
        limit = whole_of(name, key, "kHz")
        if limit is not None:
            clocks = [clock for policy in policies for clock in policy.clocks()]
            if not clocks or not min(clocks) <= limit <= max(clocks):
                span = f"{min(clocks)} to {max(clocks)} kHz" if clocks else "a range that the driver does not tell"
                raise PowerlabError(f"{name!r} cannot be set: the clocks of this CPU go from {span}.")
            return _limited(policies, name, part, limit)
    return None


def _everywhere(policies: Sequence[Policy], part: str, value: str) -> PowerMode:
    what = "the kernel's {} governor" if part == GOVERNOR else "the energy preference {}"
    return PowerMode(
        name=f"{part}={value}",
        settings=tuple(Setting(knob=KNOB, target=f"{policy.name}.{part}", value=value) for policy in policies),
        origin=ModeOrigin.INVENTED,
        description=f"{what.format(value)} on every cluster",
    )


def _limited(policies: Sequence[Policy], name: str, part: str, limit: int) -> PowerMode:
    rounded = [_not_above(policy, limit) if part == HIGH else _not_below(policy, limit) for policy in policies]
    clocks = " and ".join(f"{khz / 1e6:.2f}" for khz in sorted(set(rounded)))
    return PowerMode(
        name=name,
        settings=tuple(
            Setting(knob=KNOB, target=f"{policy.name}.{part}", value=str(khz))
            for policy, khz in zip(policies, rounded, strict=True)
        ),
        origin=ModeOrigin.INVENTED,
        description=f"CPU clocks {'up to' if part == HIGH else 'from'} {clocks} GHz",
    )


def _not_above(policy: Policy, khz: int) -> int:
    clocks = policy.clocks()
    return max((clock for clock in clocks if clock <= khz), default=min(clocks, default=khz))


def _not_below(policy: Policy, khz: int) -> int:
    clocks = policy.clocks()
    return min((clock for clock in clocks if clock >= khz), default=max(clocks, default=khz))


def _governors(policies: Sequence[Policy]) -> list[str]:
    return _common(policies, "scaling_available_governors")


def _preferences(policies: Sequence[Policy]) -> list[str]:
    """Return the preferences every cluster has, but for ``default``: it reads back as the one it stands for."""
    return [word for word in _common(policies, "energy_performance_available_preferences") if word != "default"]


def _common(policies: Sequence[Policy], file: str) -> list[str]:
    """Return the words of a file that it holds in every cluster, in the order of the first."""
    words = [policy.value(file).split() for policy in policies]
    return [word for word in words[0] if all(word in other for other in words)] if words else []
