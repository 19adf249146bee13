"""The wheels of ``make wheels``: everything in them, nothing else, for every Linux, and no server library needed."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bench.arm.machine import ArmMachine, ArmMachineError
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.measure.output_check import largest_difference
from requires import missing, require_program

pytestmark = pytest.mark.campaign(minutes=10)

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
def built_wheels(root: Path) -> dict[str, Path]:
    """The wheels that ``make wheels`` wrote, by architecture."""
    done = subprocess.run(["make", "wheels"], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution found for ziglang" in done.stderr:
        missing(f"the package index does not give the ziglang wheel: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return {
        line.rpartition("manylinux_2_17_")[2].removesuffix(".whl"): root / line
        for line in done.stdout.split()
        if line.endswith(".whl")
    }


@pytest.fixture(scope="module")
def wheel(built_wheels: dict[str, Path]) -> Path:
    return built_wheels[platform.machine()]


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def board(wheel: Path, pip_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment into which the wheel was installed without extras, as on a board."""
    folder = tmp_path_factory.mktemp("board") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    command = [sys.executable, "-m", "pip", "-qq", "--python", folder / "bin" / "python", "install", wheel]
    done = subprocess.run(command, env=pip_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def test_every_file_of_the_packages_is_in_the_wheel(source_copy: Path, names: set[str]) -> None:
    packages = {
        "powerlab": source_copy / "powerlab",
        "powerlab_agent": source_copy / "agents" / "powerlab_agent",
        "powerlab_helper": source_copy / "agents" / "powerlab_helper",
        "powerlab_api": source_copy / "api" / "powerlab_api",
        "powerlab_dashboards": source_copy / "dashboards" / "powerlab_dashboards",
        "powerlab_migrations": source_copy / "migrations" / "powerlab_migrations",
    }
    build_only = {"powerlab/native/build_backend.py", "powerlab/native/fallback_compiler.py"}
    for name, folder in packages.items():
        for path in folder.rglob("*"):
            inside = f"{name}/{path.relative_to(folder).as_posix()}"
            if path.is_file() and path.suffix not in {".cpp", ".hpp", ".pyc"} and inside not in build_only:
                assert inside in names


def test_the_wheel_holds_no_source_of_the_core_and_no_test(names: set[str]) -> None:
    assert [name for name in names if name.endswith((".cpp", ".hpp", ".h"))] == []
    assert [name for name in names if name.startswith(("tests/", "bench/", "scripts/", "docs/"))] == []
    assert any(name.startswith("powerlab/native/_native.") and name.endswith(".so") for name in names)
    assert "powerlab/native/libfake_nvml.so" in names
    assert any(name.endswith("LICENSE") for name in names)


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_pip_takes_it_on_every_linux_of_the_last_ten_years(built_wheels: dict[str, Path], architecture: str) -> None:
    command = [sys.executable, "-m", "auditwheel", "--verbose", "show", built_wheels[architecture]]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f'platform tag:\n"manylinux_2_17_{architecture}"' in shown
    assert "requires no external shared libraries" in shown


def test_a_board_runs_the_engine(board: Path) -> None:
    code = "import numpy as np; from powerlab.engine import Session; s = Session('mobilenetv2@64', threads=1); "
    code += "(name,) = s.inputs; print(*(y.shape for y in s.run({name: np.ones(s.inputs[name], np.float32)}).values()))"
    done = subprocess.run([board / "python", "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 1000)"


def test_a_board_has_the_command_line_and_no_server_library(board: Path) -> None:
    shown = subprocess.run([board / "powerlab", "--help"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "exit status" in shown.stdout
    probe = "import importlib.util as u; print([n for n in ('sqlalchemy', 'fastapi', 'jinja2') if u.find_spec(n)])"
    found = subprocess.run([board / "python", "-I", "-c", probe], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_doctor_answers_on_a_board(board: Path) -> None:
    done = subprocess.run([board / "powerlab", "doctor", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_a_server_command_on_a_board_says_what_to_install(board: Path, tmp_path: Path) -> None:
    command = [board / "powerlab", "serve", "--database", str(tmp_path / "powerlab.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "powerlab[server]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_agent_and_its_helper_start_on_a_board(board: Path) -> None:
    for program in ("powerlab-agent", "powerlab-helper"):
        done = subprocess.run([board / program, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


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
def arm_wheel(arm_machine: ArmMachine, built_wheels: dict[str, Path]) -> Path:
    arm_machine.install(built_wheels["aarch64"])
    return built_wheels["aarch64"]


def test_the_arm_wheel_holds_arm_code(arm_wheel: Path) -> None:
    with zipfile.ZipFile(arm_wheel) as files:
        (native,) = (name for name in files.namelist() if "/_native." in name)
        assert native.endswith("-aarch64-linux-gnu.so")
        assert files.read(native)[:20] == b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00"  # EM_AARCH64


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
