"""The wheel of ``make wheels`` for this machine: all in it, nothing else, for every Linux, no server library needed."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.campaign(minutes=7)


@pytest.fixture(scope="module")
def wheel(build_wheel: Callable[[str], Path]) -> Path:
    return build_wheel(platform.machine())


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


def test_pip_takes_it_on_every_linux_of_the_last_ten_years(wheel: Path, platform_of: Callable[[Path], str]) -> None:
    assert platform_of(wheel) == f"manylinux_2_17_{platform.machine()}"


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
