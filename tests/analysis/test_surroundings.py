"""What a run says of its device, in words."""

from __future__ import annotations

from dataclasses import replace

from powerlab.analysis.surroundings import surroundings
from powerlab.domain.device_state import Clock, ClockOffset, DeviceState, Fan
from powerlab.domain.run import Conditions
from server_examples import PLAN, make_run

RUN = make_run("s", PLAN.points()[0], 0)
KNOWN = DeviceState(
    kernel="5.10.120-tegra",
    l4t_release="R35.4.1",
    cpu_clocks=(Clock(name="policy0", governor="schedutil", low_hz=115_200_000, high_hz=2_201_600_000),),
    fans=(Fan(name="pwmfan 1", pwm=77), Fan(name="nct 2", speed_rpm=0), Fan(name="odd")),
)


def said(**conditions: object) -> dict[str, str]:
    return dict(surroundings(replace(RUN, conditions=Conditions(sample_period_s=0.01, **conditions))))


def test_what_is_known_is_said_and_what_is_not_is_unknown() -> None:
    words = said(device_state=KNOWN, measured_with="0.1.0")
    assert words["kernel"] == "5.10.120-tegra"
    assert words["L4T release"] == "R35.4.1"
    assert words["clock of policy0"] == "schedutil, 115.2 to 2201.6 MHz, unknown MHz before the load"
    assert words["fans"] == "pwmfan 1: PWM 77 of 255, nct 2: 0 rpm, odd: unknown"
    assert (words["powerlab"], words["engine"], words["firmware"]) == ("0.1.0", "unknown", "unknown")
    assert said(device_state=DeviceState())["fans"] == "unknown"


def test_which_clock_tells_the_time_of_day() -> None:
    assert "compared with no server's" in said(device_state=KNOWN)["time of day"]
    behind = ClockOffset(offset_s=3.25, uncertainty_s=0.0004, age_s=61.0)
    assert (
        said(device_state=KNOWN, clock_offset=behind)["time of day"]
        == "by the device's own clock, 3.25 s behind the server's, to within 0.4 ms as compared 61 s before"
    )
    ahead = ClockOffset(offset_s=-0.0031, uncertainty_s=0.0004, age_s=0.5)
    assert "3.1 ms ahead of the server's" in said(device_state=KNOWN, clock_offset=ahead)["time of day"]


def test_a_run_without_that_record_says_nothing() -> None:
    assert surroundings(RUN) == ()
    assert said() == {}
