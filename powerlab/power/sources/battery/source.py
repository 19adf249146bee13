"""Power drawn from a machine's own batteries.

The figure is the whole machine's, screen and losses included, and it is that only while the machine runs from its
batteries: on mains the same files give what flows *into* the battery. So every reading looks at the status first.
Files and units: :mod:`powerlab.power.sources.battery.cells`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, PolledChannel
from powerlab.power.sources.battery.cells import J_PER_UWH, Flow, find_cells
from powerlab.power.sources.scan import sensor_provenance
from powerlab.sysroot import Sysroot

_UPDATE_PERIOD_S = 1.0
"""The ACPI driver keeps a reading for a second (its ``cache_time``); many fuel gauges renew theirs about as often."""
_STEP_W = 0.01
"""Smart batteries count power in steps of 10 mW (Smart Battery Data Specification 1.1, 5.1.4)."""
_STEP_J = 10_000 * J_PER_UWH
"""And energy in steps of 10 mWh."""
_RELATIVE_ERROR = 0.05
"""Nobody states one. Fuel gauges are good to 1 to 3 % of the current; the voltage adds little."""

_ABSENT = "no battery that feeds this machine"
_ON_MAINS_REMEDY = "unplug the charger: only then is a battery's power the machine's"
_DENIED_REMEDY = "run powerlab with sudo, or `sudo chmod a+r /sys/class/power_supply/BAT*/*` until the next boot"
_BROKEN_REMEDY = "wait half a minute after unplugging the charger and look again"


class BatteryReader:
    """Reads all batteries of a machine as one; they take turns, and what one gives in the meantime is all there is.

    Once the charger was seen plugged in, every later reading of the same session fails: a short visit to the mains
    would else leave no more than a small gap in a run that no battery fed from start to end.
    """

    def __init__(self, sysroot: Sysroot, quantity: RailQuantity) -> None:
        self._sysroot = sysroot
        self._quantity = quantity
        self._was_on_mains = False

    @contextmanager
    def session(self) -> Iterator[None]:
        """Begin a recording: what happened before it does not count."""
        self._was_on_mains = False
        yield

    def read(self) -> float:
        """Return the power in W, or the energy drawn in J.

        Raises:
            OSError: the machine runs, or ran in this session, on mains; or a file cannot be read.
        """
        flows = [(cell, cell.flow(self._sysroot)) for cell in find_cells(self._sysroot)]
        giving = [cell for cell, flow in flows if flow is Flow.OUT]
        if not giving or any(flow is Flow.IN for _, flow in flows):
            self._was_on_mains = True
        if self._was_on_mains:
            raise OSError("the charger is plugged in, or was during the measurement")
        if self._quantity is RailQuantity.ENERGY:
            return sum(cell.drawn_j(self._sysroot) for cell, _ in flows)
        power_w = sum(cell.power_w(self._sysroot) for cell in giving)
        if power_w <= 0:
            raise OSError("the battery gives 0 W while it discharges: its gauge has not measured yet")
        return power_w


class Battery:
    """One rail for all batteries together, named after them: ``BAT0``, or ``BAT0+BAT1``."""

    name = "battery"
    # Kernel, ABI/testing/sysfs-class-power.
    root_files: tuple[str, ...] = (
        r"/sys/class/power_supply/[A-Za-z0-9_.-]+/(power|current|voltage|energy|charge)_now",
    )

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say whether the machine runs from batteries that say how much they give."""
        return self._look(sysroot)[0]

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read the rail, where the machine runs from its batteries now."""
        return self._look(sysroot)[1]

    def _look(self, sysroot: Sysroot) -> tuple[SourceProbe, tuple[Channel, ...]]:
        cells = find_cells(sysroot)
        if not cells:
            return self._none(Availability.ABSENT, _ABSENT)
        names = "+".join(cell.name for cell in cells)
        try:
            flows = {cell.flow(sysroot) for cell in cells}
            if Flow.IN in flows or Flow.OUT not in flows:
                flow = Flow.IN if Flow.IN in flows else Flow.NONE
                detail = f"{names} is {flow.value}: the machine runs on mains"
                return self._none(Availability.ABSENT, detail, _ON_MAINS_REMEDY)
            channel = self._channel(sysroot, names)
        except PermissionError:
            return self._none(Availability.DENIED, f"found {names}, but this user may not read it", _DENIED_REMEDY)
        except OSError as error:
            detail = f"{names} gives neither power nor energy ({error.strerror or error})"
            return self._none(Availability.BROKEN, detail, _BROKEN_REMEDY)
        probe = SourceProbe(
            source=self.name,
            availability=Availability.AVAILABLE,
            detail=f"{names} is discharging: its power is the whole machine's until the charger is plugged in",
            rails=(channel.rail,),
        )
        return probe, (channel,)

    def _channel(self, sysroot: Sysroot, names: str) -> PolledChannel:
        """Return how to read the power, or the energy where no battery gives a power; raises OSError for neither."""
        quantity = RailQuantity.POWER
        try:
            BatteryReader(sysroot, quantity).read()
        except FileNotFoundError:
            quantity = RailQuantity.ENERGY
            BatteryReader(sysroot, quantity).read()
        reader = BatteryReader(sysroot, quantity)
        rail = Rail(
            source=self.name,
            name=names,
            quantity=quantity,
            resolution=_STEP_W if quantity is RailQuantity.POWER else _STEP_J,
            relative_error=_RELATIVE_ERROR,
            update_period_s=_UPDATE_PERIOD_S,
            provenance=sensor_provenance(sysroot),
        )
        return PolledChannel(rail=rail, read=reader.read, session=reader.session)

    def _none(
        self, availability: Availability, detail: str, remedy: str = ""
    ) -> tuple[SourceProbe, tuple[Channel, ...]]:
        return SourceProbe(source=self.name, availability=availability, detail=detail, remedy=remedy), ()
