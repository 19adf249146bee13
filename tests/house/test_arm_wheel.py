"""The wheel of ``make wheels`` for 64-bit Arm computes on emulated cores what this machine does."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.arm.machine import ArmMachine, ArmMachineError
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.measure.output_check import largest_difference
from requires import missing, require_program

pytestmark = pytest.mark.campaign(minutes=6)

MODEL = "resnet50@64"
RUN = f"""
import sys, numpy
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
session = Session("{MODEL}", threads=2)
numpy.savez(sys.argv[1], **session.run(synthetic_inputs(session.inputs, 0)))
print(session.tier)
"""


@pytest.fixture(scope="module")
def arm_machine(tmp_path_factory: pytest.TempPathFactory) -> ArmMachine:
    for name, package in (("apt-get", "apt"), ("qemu-aarch64", "qemu-user")):
        require_program(name, package)
    machine = ArmMachine(tmp_path_factory.mktemp("arm"))
    try:
        machine.fetch()
    except ArmMachineError as error:
        missing(f"no Python for arm64: {error}")
    return machine


@pytest.fixture(scope="module")
def arm_wheel(arm_machine: ArmMachine, build_wheel: Callable[[str], Path]) -> Path:
    wheel = build_wheel("aarch64")
    arm_machine.install(wheel)
    return wheel


def test_the_arm_wheel_holds_arm_code(arm_wheel: Path) -> None:
    with zipfile.ZipFile(arm_wheel) as files:
        (native,) = (name for name in files.namelist() if "/_native." in name)
        assert native.endswith("-aarch64-linux-gnu.so")
        assert files.read(native)[:20] == b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00"  # EM_AARCH64


def test_pip_takes_it_on_every_linux_of_the_last_ten_years(arm_wheel: Path, platform_of: Callable[[Path], str]) -> None:
    assert platform_of(arm_wheel) == "manylinux_2_17_aarch64"


def test_resnet50_computes_on_arm_what_it_does_here(arm_machine: ArmMachine, arm_wheel: Path, tmp_path: Path) -> None:
    out = tmp_path / "outputs.npz"
    assert arm_machine.python("-c", RUN, out, core="cortex-a57").strip() == "neon"
    session = Session(MODEL, threads=1)
    expected = session.run(synthetic_inputs(session.inputs, 0))
    with np.load(out) as found:
        assert largest_difference(dict(found), expected) < 1e-4
    assert all(np.abs(values).max() > 0.01 for values in expected.values())


@pytest.mark.parametrize(("core", "name"), [("cortex-a57", "Cortex-A57"), ("neoverse-n1", "Neoverse N1")])
def test_the_caches_are_known_by_the_core(arm_machine: ArmMachine, arm_wheel: Path, core: str, name: str) -> None:
    said = arm_machine.python(
        "-c", "from powerlab.engine.target.arm_cores import *; print(arm_cores(Sysroot())[0].name)", core=core
    )
    assert said.strip() == name


def test_a_program_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ArmMachineError, match="apt-get is not installed"):
        ArmMachine(tmp_path / "machine").fetch()


def test_what_fails_on_the_machine_is_told(arm_machine: ArmMachine) -> None:
    with pytest.raises(ArmMachineError, match="ZeroDivisionError"):
        arm_machine.python("-c", "1 / 0", core="cortex-a57")
