"""Counting instructions under emulation: what is counted, and the table that comes of it."""

import subprocess
import sys

import pytest

from bench.arm.instructions import OURS, PEERS, build_counter, table
from bench.arm.machine import COMPILER, CORES, ArmMachineError, run
from powerlab.engine.target.arm_cores import known_cores
from requires import require_program

COUNTS = {
    "mobilenetv2": {OURS: 100_000_000, "ncnn": 110_000_000, "litert": 95_500_000},
    "resnet50": {OURS: 900_000_000, "ncnn": 1_350_000_000},
    "alexnet": {"ncnn": 200_000_000},
}

LOOPS = """
#include <sys/resource.h>
static void loop(long turns) {
  __asm__ volatile("1: subs %0, %0, #1\\n b.ne 1b" : "+r"(turns) : : "cc");
}
int main() {
  for (long turns = 1000; turns <= 100000; turns *= 10) {
    getpriority(0x706c, 1);
    loop(turns);
    getpriority(0x706c, 0);
  }
  loop(1000000);
  return 0;
}
"""
"""Two instructions a turn: three marked parts, and one that is not."""


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    require_program("qemu-aarch64", "qemu-user")
    require_program("c++", "g++")
    return build_counter(tmp_path_factory.mktemp("counter"))


def counted(counter, folder):
    compiler = require_program(COMPILER, "g++-aarch64-linux-gnu")
    source, program, counts = folder / "loops.cpp", folder / "loops", folder / "counts"
    source.write_text(LOOPS)
    run([compiler, "-O1", "-static", source, "-o", program])
    run(["qemu-aarch64", "-plugin", f"{counter},out={counts}", program])
    return [int(line) for line in counts.read_text().split()]


def test_what_lies_between_two_marks_is_counted(counter, tmp_path):
    """What is around a loop, calls among it, is the same for all, so their differences are the loops alone."""
    first, second, third = counted(counter, tmp_path)
    assert second - first == 2 * 9_000
    assert third - second == 2 * 90_000
    assert 2_000 <= first < 2_100


def test_the_counter_wants_to_know_where_its_counts_go(counter, tmp_path):
    compiler = require_program(COMPILER, "g++-aarch64-linux-gnu")
    (tmp_path / "empty.cpp").write_text("int main() { return 0; }\n")
    run([compiler, "-static", tmp_path / "empty.cpp", "-o", tmp_path / "empty"])
    done = subprocess.run(
        ["qemu-aarch64", "-plugin", str(counter), tmp_path / "empty"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0


def test_the_table_has_millions_and_ratios():
    head, rule, mobilenet, resnet, alexnet = table(COUNTS, [OURS, "ncnn", "litert"]).splitlines()
    assert head == "| model | powerlab | ncnn | litert |"
    assert rule == "|---|--:|--:|--:|"
    assert mobilenet == "| mobilenetv2 | 100.0 | 110.0 (1.10) | 95.5 (0.95) |"
    assert resnet == "| resnet50 | 900.0 | 1350.0 (1.50) | – |"
    assert alexnet == "| alexnet | – | 200.0 | – |"


def test_the_built_in_engine_is_no_peer_of_itself():
    assert OURS not in PEERS


def test_the_cores_that_can_be_emulated_are_those_of_the_table_of_caches():
    identities = {(int(implementer, 16), int(part, 16)) for implementer, part in CORES.values()}
    assert identities <= set(known_cores())


def test_a_program_that_fails_is_told_with_what_it_said():
    with pytest.raises(ArmMachineError, match="no luck"):
        run([sys.executable, "-c", "raise SystemExit('no luck')"])


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(ArmMachineError, match="no-such-program is not installed"):
        run(["no-such-program"])
