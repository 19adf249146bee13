"""Memory of the engine: in large pages where the system has them, and given back with the last that uses it."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import numpy as np
import pytest

from powerlab.engine.codegen.pack import aligned_floats

_HAS_LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage").exists()
_LARGE_FLOATS = 10 << 20
"""More than what allocations share."""


def mapping_at(address: int) -> str:
    """Return what the kernel tells of the memory at an address; empty where there is none."""
    for part in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(encoding="ascii")):
        if (found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", part)) and (
            int(found[1], 16) <= address < int(found[2], 16)
        ):
            return part
    return ""


@pytest.mark.parametrize("count", [16, 100_000, _LARGE_FLOATS])
def test_large_pages_are_asked_for_where_the_kernel_has_them(count):
    floats = aligned_floats(count)
    flags = re.search(r"VmFlags:(.*)", mapping_at(floats.ctypes.data))
    assert flags is not None
    assert ("hg" in flags[1].split()) == _HAS_LARGE_PAGES


def test_floats_do_not_overlap_and_keep_what_is_written():
    made = [aligned_floats(count) for count in (1, 16, 17, 1000, 5_000_000, 3, 5_000_000, 64)]
    for number, floats in enumerate(made):
        floats[:] = number
    for number, floats in enumerate(made):
        assert np.array_equal(floats, np.full(floats.size, number, np.float32))


def test_memory_is_given_back_with_the_last_that_uses_it():
    first, second = aligned_floats(_LARGE_FLOATS), aligned_floats(_LARGE_FLOATS)
    addresses = first.ctypes.data, second.ctypes.data
    part = first[5:]
    del first
    gc.collect()
    part[:] = 1
    assert all(mapping_at(address) for address in addresses)
    del part, second
    gc.collect()
    assert not any(mapping_at(address) for address in addresses)


@pytest.mark.parametrize("count", [-1, 2**62, 2**50])
def test_memory_that_nobody_has_is_an_error(count):
    with pytest.raises(MemoryError):
        aligned_floats(count)
