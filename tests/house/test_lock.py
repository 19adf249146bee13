"""requirements.lock pins everything that pyproject.toml may install."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def _pins(root: Path) -> dict[str, list[Requirement]]:
    pins: dict[str, list[Requirement]] = {}
    for line in (root / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if line and not line.lstrip().startswith("#"):
            requirement = Requirement(line.strip())
            pins.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return pins


def _asked(root: Path) -> dict[str, list[Requirement]]:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    tables = {
        "dependencies": project["project"]["dependencies"],
        "build-system": project["build-system"]["requires"],
        **{f"extra {k}": v for k, v in project["project"]["optional-dependencies"].items()},
        **{f"group {k}": v for k, v in project["dependency-groups"].items()},
    }
    return {where: [Requirement(text) for text in texts] for where, texts in tables.items()}


def test_every_line_pins_one_version(root: Path) -> None:
    for name, requirements in _pins(root).items():
        for requirement in requirements:
            operators = [specifier.operator for specifier in requirement.specifier]
            assert operators == ["=="], f"{name} is not pinned: {requirement}"


def test_every_requirement_is_pinned_to_a_version_it_allows(root: Path) -> None:
    pins = _pins(root)
    for where, requirements in _asked(root).items():
        for requirement in requirements:
            name = canonicalize_name(requirement.name)
            if name == "powerlab":
                continue
            assert name in pins, f"{where} asks for {name}, which requirements.lock does not pin; run 'make lock'"
            for pin in pins[name]:
                (specifier,) = pin.specifier
                assert requirement.specifier.contains(specifier.version), f"{where}: {requirement} against {pin}"


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_each_python_gets_at_most_one_version_of_a_package(root: Path, python: str) -> None:
    here = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    for name, requirements in _pins(root).items():
        valid = [pin for pin in requirements if pin.marker is None or pin.marker.evaluate(here)]
        assert len(valid) <= 1, f"{name} is pinned more than once for Python {python}"


def test_a_board_gets_no_server(root: Path) -> None:
    heavy = {"sqlalchemy", "alembic", "psycopg", "fastapi", "uvicorn", "jinja2", "plotly"}
    names = {canonicalize_name(requirement.name) for requirement in _asked(root)["dependencies"]}
    assert not names & heavy
