"""The watch ``nvml_violations``: what it says a card was slowed down by, and that it says nothing else."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvidia_cards import CARD, SILENT, put, without, write_cards
from powerlab.domain.power import Availability
from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watching
from powerlab.throttling.nvml_violations import NvmlViolations

WATCH = NvmlViolations()
POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE, BOARD_LIMIT = 0x4, 0x8, 0x20, 0x40, 0x80, 0x200
HARMLESS = (0x0, 0x1, 0x2, POWER_CAP, 0x10, 0x100)
"""None, idle, application clocks, the power limit, sync boost, display clocks."""


def look(sysroot: Sysroot, watching: Watching, *reasons: int) -> None:
    for bits in reasons:
        put(sysroot, "clocks_event_reasons", bits)
        watching.sample()


def test_it_says_what_the_cards_tell(tmp_path: Path) -> None:
    cards = [CARD, without("violation_power_ns", "violation_thermal_ns"), without("clocks_event_reasons"), SILENT]
    probe = WATCH.probe(write_cards(tmp_path, cards))
    assert probe.availability is Availability.AVAILABLE
    assert probe.detail == (
        "GPU0 tells reasons and 1 violation counter; GPU1 tells reasons; GPU2 tells 1 violation counter"
    )


@pytest.mark.parametrize(("cards", "remedy"), [([SILENT], True), ([], True)])
def test_cards_that_tell_nothing(tmp_path: Path, cards: list[Mapping[str, object]], remedy: bool) -> None:
    sysroot = write_cards(tmp_path, cards)
    probe = WATCH.probe(sysroot)
    assert probe.availability is Availability.ABSENT
    assert bool(probe.remedy) is remedy
    watching = WATCH.start(sysroot)
    watching.sample()
    assert watching.finish() == ()


@pytest.mark.parametrize(
    ("code", "availability"), [(4, Availability.DENIED), (12, Availability.ABSENT), (18, Availability.BROKEN)]
)
def test_a_library_that_does_not_start_is_said_once_and_never_raised(
    tmp_path: Path, code: int, availability: Availability
) -> None:
    sysroot = write_cards(tmp_path, init_error=code)
    assert WATCH.probe(sysroot).availability is availability
    watching = WATCH.start(sysroot)
    watching.sample()
    assert watching.finish() == ()


def test_a_device_without_cards(tmp_path: Path) -> None:
    assert WATCH.probe(Sysroot(tmp_path)).availability is Availability.ABSENT
    assert WATCH.start(Sysroot(tmp_path)).finish() == ()


def test_a_power_limit_that_is_kept_to_is_no_throttling(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [{**CARD, "violation_power_ns": 4_000_000_000}])
    watching = WATCH.start(sysroot)
    look(sysroot, watching, POWER_CAP, POWER_CAP)
    put(sysroot, "violation_power_ns", 5_200_000_000)
    assert watching.finish() == ()


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (SW_THERMAL, "the heat of GPU0 (41 °C at the end) held its clocks down in 2 of 3 looks"),
        (HW_THERMAL, "the heat of GPU0 (41 °C at the end) held its clocks down in 2 of 3 looks"),
        (POWER_BRAKE, "the power brake signal of its supply slowed GPU0 down in 2 of 3 looks"),
        (BOARD_LIMIT, "a limit of GPU0's board held its clocks down in 2 of 3 looks"),
        (HW_SLOWDOWN, "GPU0's hardware slowed it down (heat, power or its supply) in 2 of 3 looks"),
        (HW_SLOWDOWN | HW_THERMAL, "the heat of GPU0 (41 °C at the end) held its clocks down in 2 of 3 looks"),
    ],
)
def test_a_reason_without_a_counter_is_told_by_the_looks(tmp_path: Path, bits: int, words: str) -> None:
    sysroot = write_cards(tmp_path)
    watching = WATCH.start(sysroot)
    look(sysroot, watching, 0x1, bits, bits | 0x2)
    assert watching.finish() == (words,)


@pytest.mark.parametrize("bits", HARMLESS)
def test_what_is_no_throttling_is_not_told(tmp_path: Path, bits: int) -> None:
    sysroot = write_cards(tmp_path)
    watching = WATCH.start(sysroot)
    look(sysroot, watching, bits, bits)
    assert watching.finish() == ()


@pytest.mark.parametrize("bits", [POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE, BOARD_LIMIT])
def test_a_card_with_nothing_to_do_is_not_slowed_down(tmp_path: Path, bits: int) -> None:
    """Some say "power cap" at rest; a run on the processor must not be marked for it."""
    sysroot = write_cards(tmp_path)
    watching = WATCH.start(sysroot)
    look(sysroot, watching, bits | 0x1, bits | 0x1)
    assert watching.finish() == ()


class OldNvml:
    """The package on a host whose driver knows the reasons by their former name, and counts nothing."""

    class NVMLError(Exception):
        value = 13

    def __init__(self) -> None:
        self.started = 0

    def nvmlInit(self) -> None:  # noqa: N802
        self.started += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.started -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:  # noqa: N802
        raise self.NVMLError("Function Not Found")

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:  # noqa: N802
        return HW_THERMAL


def test_an_older_driver_is_asked_by_the_older_name(monkeypatch: pytest.MonkeyPatch) -> None:
    host = OldNvml()
    monkeypatch.setitem(sys.modules, "pynvml", host)
    assert WATCH.probe(Sysroot()).detail == "GPU0 tells reasons"
    watching = WATCH.start(Sysroot())
    assert host.started == 1, "NVML stays started while it watches"
    watching.sample()
    assert watching.finish() == ("the heat of GPU0 held its clocks down in 1 of 1 looks",)
    assert host.started == 0


def test_what_was_counted_before_is_not_this_runs(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [{**CARD, "violation_thermal_ns": 10**12}])
    watching = WATCH.start(sysroot)
    put(sysroot, "violation_thermal_ns", 10**12 + 900_000)
    assert watching.finish() == (), "less than a millisecond is nothing"


def test_every_card_speaks_for_itself(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [CARD, CARD])
    watching = WATCH.start(sysroot)
    put(sysroot, "violation_thermal_ns", 2_000_000_000, index=1)
    put(sysroot, "violation_thermal_ns", 300_000_000, index=0)
    assert watching.finish() == (
        "the heat of GPU0 (41 °C at the end) held its clocks down for 0.3 s",
        "the heat of GPU1 (41 °C at the end) held its clocks down for 2 s",
    )


def test_a_card_that_does_not_tell_its_temperature(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [without("temperature_c")])
    watching = WATCH.start(sysroot)
    put(sysroot, "violation_thermal_ns", 2_000_000_000)
    assert watching.finish() == ("the heat of GPU0 held its clocks down for 2 s",)


def test_a_card_that_is_lost_meanwhile_says_what_was_seen_until_then(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    watching = WATCH.start(sysroot)
    look(sysroot, watching, POWER_BRAKE)
    sysroot.path("/simulation/nvml/gpu0").rename(tmp_path / "gone")
    watching.sample()
    assert watching.finish() == ("the power brake signal of its supply slowed GPU0 down in 1 of 1 looks",)
    watching.sample()
    assert watching.finish() == (), "it is over"


@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=40), bits=st.integers(0, 2**64 - 1))
def test_whatever_the_files_hold_it_never_raises(
    tmp_path_factory: pytest.TempPathFactory, text: str, bits: int
) -> None:
    sysroot = write_cards(tmp_path_factory.mktemp("fuzzed"))
    watching = WATCH.start(sysroot)
    look(sysroot, watching, bits)
    for name in ("violation_power_ns", "clocks_event_reasons", "temperature_c", "power_limit_mw"):
        sysroot.path(f"/simulation/nvml/gpu0/{name}").write_bytes(text.encode("utf-8", "surrogatepass"))
    watching.sample()
    assert all(sentence.startswith(("the ", "a ", "GPU0")) for sentence in watching.finish())
