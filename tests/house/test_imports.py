"""What the import contract, which make check holds, means for an agent."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_LIST_IMPORTS = """
import importlib, pkgutil, sys, {package}
for module in pkgutil.walk_packages({package}.__path__, "{package}."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("\\n".join(sys.modules))
"""


def test_every_package_has_its_place_in_the_layers(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (c["layers"] for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    placed = {name.strip() for layer in layers for name in layer.replace(":", "|").split("|")}
    for path in (root / "powerlab").iterdir():
        if (path / "__init__.py").is_file() or (path.suffix == ".py" and path.name != "__init__.py"):
            assert f"powerlab.{path.stem}" in placed, f"powerlab.{path.stem} is in no layer of pyproject.toml"


@pytest.mark.parametrize("package", ["powerlab_agent", "powerlab.sweep", "powerlab.measure", "powerlab.domain"])
def test_what_runs_on_a_board_loads_no_server_library(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIST_IMPORTS.format(package=package)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"sqlalchemy", "alembic", "fastapi", "starlette", "jinja2", "plotly"}


def _loaded_by(commands: str) -> set[str]:
    code = f"import sys, powerlab.cli as c; c.parser({commands}); print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_the_command_line_starts_without_heavy_imports() -> None:
    assert not _loaded_by("()") & {"sqlalchemy", "fastapi", "plotly", "rich", "onnxruntime", "numpy"}


def test_no_command_shows_its_help_only_where_the_server_extra_is_installed() -> None:
    assert not _loaded_by("c.COMMANDS") & {"sqlalchemy", "fastapi", "plotly", "onnxruntime"}
