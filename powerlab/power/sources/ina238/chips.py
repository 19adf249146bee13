"""Resolution and offset of the chips of the INA238 family.

Sources: the makers' data sheets, their figures rounded up; the scaling that Linux's driver chooses
(drivers/hwmon/ina238.c, Documentation/hwmon/ina238.rst).
"""

from __future__ import annotations

from dataclasses import dataclass

DRIVER_SHUNT_UOHM = 10_000
"""What the driver takes where nobody states the shunt."""
WIDE_GAIN = 4
"""The driver's word for the ±163.84 mV range, its default; 1 is the ±40.96 mV range."""
_CURRENT_STEP_UV = 5.0
"""With the driver's calibration one count of the current register is 5 µV over the shunt, times the gain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ina238Chip:
    """One chip of the family.

    Attributes:
        offset_uv: bound of the shunt voltage's offset in µV.
        relative_error: the gain error as a fraction, with a shunt of 1 % where the chip needs one.
        finer: how many times finer than 16 bits the current is.
        current_step_a: the step of the current of a chip that has its shunt inside; None for all others.
    """

    offset_uv: float
    relative_error: float
    finer: int = 1
    current_step_a: float | None = None


CHIPS = {
    "ina228": Ina238Chip(offset_uv=1.0, relative_error=0.0105, finer=16),
    "ina237": Ina238Chip(offset_uv=50.0, relative_error=0.016),
    "ina238": Ina238Chip(offset_uv=5.0, relative_error=0.012),
    "ina700": Ina238Chip(offset_uv=0.0, relative_error=0.01, current_step_a=0.48e-3),
    "ina780": Ina238Chip(offset_uv=0.0, relative_error=0.01, current_step_a=2.4e-3),
    # No data sheet in English states its offset: the worst of the others stands in.
    "sq52206": Ina238Chip(offset_uv=50.0, relative_error=0.02),
}
"""By the text of the chip's ``name`` file."""


@dataclass(frozen=True, slots=True)
class PowerErrors:
    """Of a power reading: its step and the bound of its offset, both in W."""

    step_w: float
    offset_w: float


def power_errors(chip: Ina238Chip, shunt_uohm: int, gain: int, voltage_mv: int) -> PowerErrors:
    """Return the step and the offset of a power reading.

    Power is the product of the current and the bus voltage, so a step of the current is a step of the power, too.

    Args:
        chip: the kind of chip.
        shunt_uohm: the shunt resistor in µΩ; at or below 0 it says nothing, and the driver's own stands in.
        gain: the driver's gain, 1 or 4.
        voltage_mv: the bus voltage in mV.
    """
    voltage_v = max(voltage_mv, 0) * 1e-3
    if chip.current_step_a is not None:
        return PowerErrors(chip.current_step_a * voltage_v, chip.current_step_a * voltage_v)
    shunt = shunt_uohm if shunt_uohm > 0 else DRIVER_SHUNT_UOHM
    gain = gain if gain in (1, WIDE_GAIN) else WIDE_GAIN
    step_w = _CURRENT_STEP_UV * gain / chip.finer / shunt * voltage_v
    return PowerErrors(step_w, chip.offset_uv / shunt * voltage_v)
