"""The energy counter of AMD's accelerators: in which tables it is found, where, and what is no counter."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from powerlab.domain.power import RailQuantity
from powerlab.power.base import PolledChannel
from powerlab.power.registry import probe_all
from powerlab.power.sources.amdgpu import Amdgpu
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot

Tree = Callable[[Mapping[str, object]], Sysroot]
ChipFiles = Callable[..., Mapping[str, object]]
DEVICE = "/sys/class/hwmon/hwmon1/device"
POWER = {"power1_average": 90_000_000, "power1_input": 91_000_000}
PLACES = {(1, 3): 24, (1, 4): 24, (1, 5): 88, (1, 6): 16, (1, 7): 24, (1, 8): 24}
"""By the structures of kgd_pp_interface.h, counted by hand."""
MI210, MI300X, RADEON = "0x740f", "0x74a1", "0x7448"


def table(form: tuple[int, int], joules: float | None, size: int = 288) -> bytes:
    """Return a table in which nothing but the counter is given."""
    place = PLACES.get(form, 24)
    head = struct.pack("<HBB", size, *form)
    found = (
        head + b"\xff" * (place - len(head)) + struct.pack("<Q", 2**64 - 1 if joules is None else round(joules * 2**16))
    )
    return found + b"\xff" * (size - len(found))


@pytest.fixture
def card(tree: Tree, hwmon_chip: ChipFiles) -> Callable[[bytes, str], Sysroot]:
    def made(metrics: bytes, device: str) -> Sysroot:
        sysroot = tree({**hwmon_chip(1, "amdgpu", POWER), f"{DEVICE}/device": device})
        sysroot.path(f"{DEVICE}/gpu_metrics").write_bytes(metrics)
        return sysroot

    return made


def names(sysroot: Sysroot) -> list[str]:
    return [rail.name for rail in Amdgpu().probe(sysroot).rails]


@pytest.mark.parametrize("form", PLACES)
def test_every_form_of_a_stated_unit_counts(card: Callable[[bytes, str], Sysroot], form: tuple[int, int]) -> None:
    sysroot = card(table(form, 1234.5), MI210 if form == (1, 3) else MI300X)
    assert names(sysroot) == ["GPU0", "GPU0 instant", "GPU0 average"]
    (counter, *_) = Amdgpu().channels(sysroot)
    assert isinstance(counter, PolledChannel)
    assert counter.rail.quantity is RailQuantity.ENERGY
    assert counter.read() == 1234.5
    sysroot.path(f"{DEVICE}/gpu_metrics").write_bytes(table(form, 1300.25))
    assert counter.read() == 1300.25
    total = choose_total(probe_all(sysroot), None)
    assert total is None, "a card alone is no total of a device"


@pytest.mark.parametrize(
    ("metrics", "device"),
    [
        (table((1, 3), 50.0), RADEON),
        (table((1, 1), 50.0), "0x738c"),
        (table((1, 9), 50.0), MI300X),
        (table((2, 4), 50.0), "0x15bf"),
        (table((1, 3), 0.0), MI210),
        (table((1, 4), None), MI300X),
        (table((1, 4), 50.0)[:20], MI300X),
        (table((1, 4), 50.0, size=28), MI300X),
        (b"", MI300X),
    ],
    ids=["no unit", "MI100", "later form", "APU", "second die", "not given", "cut off", "too small", "empty"],
)
def test_what_is_no_counter_leaves_the_power(
    card: Callable[[bytes, str], Sysroot], metrics: bytes, device: str
) -> None:
    assert names(card(metrics, device)) == ["GPU0", "GPU0 average"]


def test_a_table_that_goes_away_is_a_failed_read(card: Callable[[bytes, str], Sysroot], tmp_path: Path) -> None:
    sysroot = card(table((1, 6), 7.0), MI300X)
    (counter, *_) = Amdgpu().channels(sysroot)
    assert isinstance(counter, PolledChannel)
    for left in (b"", table((1, 6), 0.0)):
        sysroot.path(f"{DEVICE}/gpu_metrics").write_bytes(left)
        with pytest.raises(OSError, match=r"gpu_metrics"):
            counter.read()
    sysroot.path(f"{DEVICE}/gpu_metrics").unlink()
    with pytest.raises(FileNotFoundError):
        counter.read()
