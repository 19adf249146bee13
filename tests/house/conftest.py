"""Fixtures about the project as a whole."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from requires import missing

ROOT = Path(__file__).resolve().parents[2]


def _load(path: Path) -> ModuleType:
    """Import a file that lies in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def load() -> Callable[[Path], ModuleType]:
    """Imports a file that lies in no package."""
    return _load


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def setup_venv() -> ModuleType:
    """The set-up script as a module."""
    return _load(ROOT / "scripts" / "setup_venv.py")


@pytest.fixture(scope="session")
def fallback_compiler() -> ModuleType:
    """The fallback compiler's wrapper as a module."""
    return _load(ROOT / "powerlab" / "native" / "fallback_compiler.py")


@pytest.fixture(scope="session")
def tracked(root: Path) -> list[Path]:
    """Every file of the project: what git tracks, or would after ``git add``."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [root / name for name in done.stdout.splitlines() if (root / name).is_file()]


@pytest.fixture(scope="session")
def pip_environment() -> dict[str, str]:
    """The variables for a pip that must use the lock file's versions, also for what it builds with."""
    return {
        **{k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}},
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CONSTRAINT": str(ROOT / "requirements.lock"),
        "PIP_BUILD_CONSTRAINT": str(ROOT / "requirements.lock"),
    }


@pytest.fixture(scope="session")
def source_copy(tracked: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project as a fresh clone would be: no build folder, no environment."""
    folder = tmp_path_factory.mktemp("clone")
    for path in tracked:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return folder


@pytest.fixture(scope="session")
def build_wheel(root: Path) -> Callable[[str], Path]:
    """Writes the wheel for an architecture, as ``make wheels`` does."""

    def build(architecture: str) -> Path:
        (root / "build").mkdir(exist_ok=True)
        with open(root / "build" / "wheels.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be at it
            command = ["make", "wheels", f"ONLY={architecture}"]
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode and "No matching distribution found for ziglang" in done.stderr:
            missing(f"the package index does not give the ziglang wheel: {done.stderr.strip()[-300:]}")
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        # Called by another make, this one says more than the path.
        (wheel,) = (line for line in done.stdout.splitlines() if line.endswith(".whl"))
        return root / wheel

    return build


@pytest.fixture(scope="session")
def platform_of() -> Callable[[Path], str]:
    """Tells for which platform a wheel is by the symbols that it uses; it must need no library."""

    def judged(wheel: Path) -> str:
        command = [sys.executable, "-m", "auditwheel", "--verbose", "show", wheel]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "requires no external shared libraries" in shown
        return shown.partition('platform tag:\n"')[2].partition('"')[0]

    return judged
