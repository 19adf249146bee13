"""Resolution, update period and error of known hwmon chips.

hwmon states a unit and nothing else. Sources: the kernel's Documentation/hwmon, the ACPI specification (10.4: meters
count in mW), the PMBus specification (part II, 7.3: the LINEAR11 format has 11 bits of mantissa) and the drivers'
documented behaviour. Where nobody states anything, the step is 0, the error is :data:`UNSTATED_ERROR` and the period is
0: the recorder finds the real one by watching the value change.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

UNSTATED_ERROR = 0.1
"""Stands in where a chip states no error: most of these readings are calibrated by nobody."""

_LINEAR11_LARGEST_MANTISSA = 1023
_LINEAR11_SMALLEST_STEP_W = 2.0**-16
_PMBUS_LABEL = re.compile(r"p(in|out)[0-9]*")
_REGULATOR_INPUT_BELOW_MV = 40_000
"""Power supplies take the mains or a rack's 48 V; what takes less is a regulator inside a machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a reading is worth.

    Attributes:
        step_w: the step of a power reading in W; 0 where unknown.
        update_period_s: how often the value changes; 0 where unknown.
        relative_error: the gain error as a fraction.
    """

    step_w: float = 0.0
    update_period_s: float = 0.0
    relative_error: float = UNSTATED_ERROR


_CHIPS = {
    # ACPI counts in mW; the driver keeps a reading for the meter's own interval, which it also shows.
    "power_meter": Facts(step_w=1e-3),
    "apm_xgene": Facts(step_w=1e-3),
    "xgene_hwmon": Facts(step_w=1e-3),
}
_UNKNOWN = Facts()


def linear11_step_w(power_w: float) -> float:
    """Return the step of a PMBus reading in W: the smallest power of two that lets 1023 steps reach the reading.

    A device may use a larger exponent than it needs; none can use a smaller one.
    """
    if not (math.isfinite(power_w) and power_w > 0):
        return 0.0
    least_w = max(power_w / _LINEAR11_LARGEST_MANTISSA, _LINEAR11_SMALLEST_STEP_W)
    return float(2.0 ** math.ceil(math.log2(least_w)))


def is_pmbus(label: str) -> bool:
    """Tell whether a label is one of the kernel's names for a PMBus power: ``pin``, ``pin2``, ``pout1``."""
    return _PMBUS_LABEL.fullmatch(label) is not None


def is_regulator(label: str, input_mv: int | None) -> bool:
    """Tell whether a PMBus power belongs to a regulator inside the machine and not to a power supply.

    Args:
        label: the power's label.
        input_mv: the chip's input voltage in mV, None where it shows none.
    """
    return is_pmbus(label) and input_mv is not None and input_mv < _REGULATOR_INPUT_BELOW_MV


def facts(chip_name: str, label: str, power_w: float) -> Facts:
    """Return what is known about one power reading.

    Args:
        chip_name: the text of the chip's ``name`` file.
        label: the reading's label, empty where it has none.
        power_w: a present reading, whose size decides the step where the format is a floating one.
    """
    if is_pmbus(label) or chip_name == "corsairpsu":
        return Facts(step_w=linear11_step_w(power_w), relative_error=0.05)
    return _CHIPS.get(chip_name, _UNKNOWN)
