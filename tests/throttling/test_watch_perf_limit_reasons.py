"""Intel's register of reasons: bits of now, bits of the past, and processors that have none."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability
from powerlab.throttling import perf_limit_reasons
from powerlab.throttling.perf_limit_reasons import (
    PerfLimitReasons,
    Register,
    first_processors,
    limiting,
    logged,
    register_of,
)

SKYLAKE, HASWELL, GOLDMONT = 0x9E, 0x3C, 0x5C
PROCHOT, THERMAL, RATL, VR_THERM, VR_TDC, OTHER, PL1, PL2, TURBO = (1 << bit for bit in (0, 1, 5, 6, 7, 8, 10, 11, 12))
LOG = 16


def cpuinfo(model=SKYLAKE, vendor="GenuineIntel", family=6, packages=(0, 0)):
    block = (
        "processor\t: {}\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: Some CPU\nphysical id\t: {}\n"
    )
    return "\n".join(block.format(index, vendor, family, model, package) for index, package in enumerate(packages))


def register(value, address=0x64F):
    """A file that gives the register's value where the driver would."""
    return bytes(address) + value.to_bytes(8, "little")


def machine(value=0, model=SKYLAKE, address=0x64F, processor=0, **more):
    return {"/proc/cpuinfo": cpuinfo(model, **more), f"/dev/cpu/{processor}/msr": register(value, address)}


def watched(tree, *values, **more):
    """Watch a register that takes one value after the other; return the sentences."""
    first, *others = values
    watching = PerfLimitReasons().start(tree(machine(first, **more)))
    for value in others:
        tree(machine(value, **more))
        watching.sample()
    return watching.finish()


def test_a_processor_that_nothing_limits_says_nothing(tree):
    assert watched(tree, 0, 0, 0) == ()


@pytest.mark.parametrize(
    ("bit", "words"),
    [
        (PROCHOT, "another part of the machine asked it to slow down (PROCHOT)"),
        (THERMAL, "it was too hot "),
        (RATL, "too hot over a longer time"),
        (VR_THERM, "its voltage regulator was too hot"),
        (VR_TDC, "its voltage regulator could not deliver more current"),
    ],
)
def test_a_reason_that_limits_now_is_told_with_its_share_of_the_looks(tree, bit, words):
    (sentence,) = watched(tree, 0, bit, bit, 0)
    assert words in sentence
    assert "cpu0" in sentence
    assert "seen in 40% of the looks" in sentence


@pytest.mark.parametrize("bit", [OTHER, PL1, PL2, TURBO, 1 << 4, 1 << 13])
def test_limits_that_were_set_or_are_built_in_are_no_throttling(tree, bit):
    assert watched(tree, bit, bit | bit << LOG) == ()


def test_a_log_bit_that_appears_tells_of_a_moment_between_the_looks(tree):
    (sentence,) = watched(tree, 0, THERMAL << LOG)
    assert "it was too hot (for a moment)" in sentence


def test_a_log_bit_from_before_says_nothing(tree):
    assert watched(tree, THERMAL << LOG, THERMAL << LOG) == ()
    (sentence,) = watched(tree, THERMAL << LOG, (THERMAL | PROCHOT) << LOG)
    assert "PROCHOT" in sentence


def test_haswell_has_another_register_and_fewer_reasons(tree):
    assert watched(tree, 0, THERMAL, model=HASWELL, address=0x690)
    assert watched(tree, 0, RATL, model=HASWELL, address=0x690) == ()


def test_each_package_is_asked_through_its_first_processor(tree):
    files = machine(packages=(0, 0, 1, 1)) | {"/dev/cpu/2/msr": register(0)}
    watching = PerfLimitReasons().start(tree(files))
    tree({"/dev/cpu/2/msr": register(THERMAL)})
    (sentence,) = watching.finish()
    assert "cpu2" in sentence


def test_a_register_that_can_no_longer_be_read_says_nothing(tree):
    sysroot = tree(machine())
    watching = PerfLimitReasons().start(sysroot)
    sysroot.path("/dev/cpu/0/msr").unlink()
    watching.sample()
    assert watching.finish() == ()


def test_a_processor_without_the_register_is_asked_nothing(tree):
    assert PerfLimitReasons().start(tree({})).finish() == ()
    assert PerfLimitReasons().start(tree({"/proc/cpuinfo": cpuinfo(vendor="AuthenticAMD")})).finish() == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n",
        cpuinfo(vendor="AuthenticAMD"),
        cpuinfo(family=15),
        cpuinfo(model=GOLDMONT),
        cpuinfo(model=0x3E),
        cpuinfo(model=0x2A),
        cpuinfo(model="unknown"),
    ],
)
def test_processors_whose_bits_are_not_known_have_no_register(text):
    assert register_of(text) is None


def test_known_processors():
    assert register_of(cpuinfo(SKYLAKE)).address == 0x64F
    assert register_of(cpuinfo(0xB7)).address == 0x64F
    assert register_of(cpuinfo(HASWELL)).address == 0x690


def test_the_probe_says_what_to_do(tree, monkeypatch):
    probe = PerfLimitReasons().probe
    assert probe(tree({})).availability is Availability.ABSENT
    found = probe(tree({"/proc/cpuinfo": cpuinfo()}))
    assert found.availability is Availability.ABSENT
    assert "modprobe msr" in found.remedy
    found = probe(tree(machine()))
    assert found.availability is Availability.AVAILABLE
    assert "0x64f of 1 package" in found.detail
    found = probe(tree({"/dev/cpu/0/msr": b"short"}))
    assert found.availability is Availability.BROKEN
    assert "gave 0 bytes" in found.detail

    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(perf_limit_reasons, "_read", refuse)
    found = probe(tree(machine()))
    assert found.availability is Availability.DENIED
    assert "root" in found.remedy


ANY_REGISTER = st.integers(0, 2**64 - 1)


@given(ANY_REGISTER)
def test_the_log_half_is_read_as_the_status_half(value):
    known = Register(0x64F, {0: "a", 6: "b", 15: "c"})
    assert limiting(value, known) <= set(known.reasons)
    assert logged(value, known) == limiting(value >> 16, known)


@given(st.text(max_size=200))
def test_any_text_may_stand_in_cpuinfo(text):
    found = register_of(text)
    assert found is None or found.address in {0x64F, 0x690}
    assert len(first_processors(text)) <= text.count("processor")
