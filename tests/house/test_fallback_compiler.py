"""The compiler that comes from the package index: its arguments, and a real build where the machine's own is hidden."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requires import missing

_HIDDEN = ("c++", "g++", "gcc", "cc", "clang", "cmake", "ninja", "ld", "ar", "as")

_USE_IT = """
import numpy as np
from powerlab.native import _native
from powerlab.engine import Session
print(Session("alexnet", threads=1).run({"x": np.ones((1, 3, 224, 224), np.float32)}).popitem()[1].shape)
"""


@pytest.mark.parametrize(
    ("given_argument", "expected"),
    [
        ("-march=x86-64-v2", "-march=x86_64_v2"),
        ("-march=x86-64-v4", "-march=x86_64_v4"),
        ("-march=haswell", "-march=haswell"),
        ("-march=armv8-a", "-mcpu=generic+v8a"),
        ("-march=armv8.2-a+fp16+dotprod", "-mcpu=generic+v8_2a+fullfp16+dotprod"),
        ("-march=armv8.6-a+sve", "-mcpu=generic+v8_6a+sve"),
    ],
)
def test_processor_names_are_translated(fallback_compiler: ModuleType, given_argument: str, expected: str) -> None:
    assert fallback_compiler.translate(["-O3", given_argument, "-c"]) == ["-mcpu=baseline", "-O3", expected, "-c"]


def test_the_build_machine_is_never_the_target(fallback_compiler: ModuleType) -> None:
    assert fallback_compiler.translate([])[0] == "-mcpu=baseline"
    assert fallback_compiler.translate(["-mtune=native"]) == ["-mcpu=baseline"]


@given(st.lists(st.text(min_size=1).filter(lambda text: not text.startswith(("-march=", "-mtune=")))))
def test_other_arguments_pass_unchanged(fallback_compiler: ModuleType, arguments: list[str]) -> None:
    assert fallback_compiler.translate(arguments)[1:] == arguments


@pytest.mark.parametrize(
    ("compilers", "taken"),
    [
        ({}, True),
        ({"g++": 0}, False),
        ({"g++": 1}, True),
        ({"c++": 1, "g++": 0}, True),
        ({"clang++": 0}, False),
    ],
    ids=["none", "new", "too old", "what CMake takes is too old", "clang"],
)
def test_it_is_taken_where_the_compiler_that_cmake_would_take_does_not_know_cpp20(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilers: dict[str, int], taken: bool
) -> None:
    for name, status in compilers.items():
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\ncase "$*" in *-std=c++20*) exit {status};; esac\nexit 9\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.syspath_prepend(root / "powerlab/native")
    backend = importlib.import_module("build_backend")
    assert any("ziglang" in need for need in backend.get_requires_for_build_wheel()) is taken
    monkeypatch.setenv("CXX", "mine")
    assert not any("ziglang" in need for need in backend.get_requires_for_build_wheel()), "somebody's choice"


def _path_without_compilers(folder: Path) -> str:
    """Return a PATH that holds the system's programs except those a build needs."""
    for directory in ("/usr/bin", "/bin"):
        for program in Path(directory).iterdir():
            if program.name.startswith(("python", "x86_64", "aarch64")) or program.name in _HIDDEN:
                continue
            if any(word in program.name for word in ("gcc", "g++", "clang", "cmake")):
                continue
            link = folder / program.name
            if not link.exists() and program.exists():
                link.symlink_to(program)
    assert not any(shutil.which(name, path=str(folder)) for name in _HIDDEN)
    return str(folder)


@pytest.mark.campaign(minutes=5)
def test_a_machine_without_a_compiler_builds_and_runs_the_engine(
    source_copy: Path, pip_environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    environment = {
        **{k: v for k, v in pip_environment.items() if k not in {"CXX", "CC", "AR", "CMAKE_CXX_COMPILER_LAUNCHER"}},
        "PATH": _path_without_compilers(tmp_path / "bin"),
        # One tier that is not optimised shows that the compiler works, in little time; test_wheels has the rest.
        "SKBUILD_CMAKE_DEFINE": "POWERLAB_TIERS=sse4",
        "SKBUILD_CMAKE_BUILD_TYPE": "Debug",
    }
    wheels, place = tmp_path / "wheels", tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    probe = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "-d", tmp_path, "ziglang"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode != 0:
        missing(f"the package index does not give the ziglang wheel: {probe.stderr.strip()[-300:]}")
    _pip(environment, "wheel", "--no-deps", "-w", str(wheels), str(source_copy))
    (wheel,) = wheels.glob("powerlab-*.whl")
    _pip(environment, "--python", str(place / "bin" / "python"), "install", str(wheel))
    done = subprocess.run(
        [place / "bin" / "python", "-I", "-c", _USE_IT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(1, 1000)"
    assert (source_copy / "build" / "fallback-compiler" / "zig-c++").is_file()


def _pip(environment: dict[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "-qq", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
