"""powerlab's wheel for 64-bit Arm: built across, installed into a Python of that architecture, and run there."""

import zipfile

import numpy as np
import pytest
from arm_machine import COMPILER, ArmMachine, ArmMachineError

from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import made_inputs
from powerlab.measure.output_check import largest_difference
from requires import missing, require_program

pytestmark = pytest.mark.campaign

MODEL = "resnet50@64"
RUN = f"""
import sys, numpy
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import made_inputs
session = Session("{MODEL}", threads=2)
numpy.savez(sys.argv[1], **session.run(made_inputs(session.inputs, 0)))
print(session.tier)
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    for name, package in (("apt-get", "apt"), ("qemu-aarch64", "qemu-user"), (COMPILER, "g++-aarch64-linux-gnu")):
        require_program(name, package)
    machine = ArmMachine(tmp_path_factory.mktemp("arm"))
    try:
        machine.fetch()
    except ArmMachineError as error:
        missing(f"no Python for arm64: {error}")
    return machine


@pytest.fixture(scope="module")
def wheel(machine):
    found = machine.build_wheel()
    machine.install(found)
    return found


def test_the_wheel_says_what_it_is_for(wheel):
    assert wheel.name.endswith("-linux_aarch64.whl")
    with zipfile.ZipFile(wheel) as files:
        (native,) = (name for name in files.namelist() if "/_native." in name)
        assert native.endswith("-aarch64-linux-gnu.so")
        assert files.read(native)[:20] == b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00"  # EM_AARCH64


def test_resnet50_computes_what_it_does_here(machine, wheel, tmp_path):
    out = tmp_path / "outputs.npz"
    assert machine.python("-c", RUN, out, core="cortex-a57").strip() == "neon"
    session = Session(MODEL, threads=1)
    expected = session.run(made_inputs(session.inputs, 0))
    with np.load(out) as found:
        assert largest_difference(dict(found), expected) < 1e-4
    assert all(np.abs(values).max() > 0.01 for values in expected.values())


@pytest.mark.parametrize(("core", "name"), [("cortex-a57", "Cortex-A57"), ("neoverse-n1", "Neoverse N1")])
def test_the_caches_are_known_by_the_core(machine, wheel, core, name):
    said = machine.python(
        "-c", "from powerlab.engine.target.arm_cores import *; print(arm_cores(Sysroot())[0].name)", core=core
    )
    assert said.strip() == name


def test_a_program_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ArmMachineError, match="apt-get is not installed"):
        ArmMachine(tmp_path / "machine").fetch()


def test_what_fails_on_the_machine_is_told(machine):
    with pytest.raises(ArmMachineError, match="ZeroDivisionError"):
        machine.python("-c", "1 / 0", core="cortex-a57")
