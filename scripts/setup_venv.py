"""Make or fix ``.venv`` so that it holds powerlab with the extras asked for; do nothing where it already does.

Usage: ``python scripts/setup_venv.py server`` or ``... dev``. Only the standard library is used, because nothing
else is installed yet. Every version comes from ``requirements.lock``; only the configured package index is spoken to.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = "requirements.lock"
EXTRAS_WITHIN = {"server": {"server"}, "dev": {"dev", "server"}}
"""What each extra that make asks for brings along."""

_DEPENDENCY_FILES = ("pyproject.toml", LOCK, "scripts/setup_venv.py")
_NATIVE_PATTERNS = ("CMakeLists.txt", "powerlab/native/**/*")
_PACKAGE_FOLDERS = ("powerlab", "agents", "api", "dashboards", "migrations")
_NATIVE_SUFFIXES = {".cpp", ".hpp", ".h", ".cmake", ".inc", ".txt", ".py"}


class SetupError(Exception):
    """A step failed; the text is one sentence for the user."""


def digest(paths: Iterable[Path]) -> str:
    """Return one hash over the names and the contents of files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def native_sources(root: Path) -> Iterator[Path]:
    """Yield the files that a change of means a new build."""
    for pattern in _NATIVE_PATTERNS:
        for path in sorted(root.glob(pattern)):
            if path.is_file() and path.suffix in _NATIVE_SUFFIXES and path.name != "__init__.py":
                yield path


def packages(root: Path) -> list[str]:
    """Return the folders of Python packages, because an editable install remembers which file each module lies in."""
    found = {path.parent for folder in _PACKAGE_FOLDERS for path in root.glob(f"{folder}/**/*.py")}
    return sorted(str(path.relative_to(root)) for path in found)


def wanted_state(root: Path) -> dict[str, str]:
    """Return what an up-to-date environment was made from: place, dependencies, native sources, package folders."""
    return {
        "root": str(root),
        "dependencies": digest(root / name for name in _DEPENDENCY_FILES),
        "native": digest(native_sources(root)),
        "packages": hashlib.sha256("\n".join(packages(root)).encode()).hexdigest(),
    }


def pinned(lock_text: str, package: str) -> str:
    """Return the version of a package in the lock file."""
    found = re.search(rf"^{re.escape(package)}==([^ ;\n]+)", lock_text, re.MULTILINE)
    if found is None:
        raise SetupError(f"{LOCK} does not pin {package}; run 'make lock'.")
    return found.group(1)


def say(text: str) -> None:
    """Tell the user what is going on."""
    print(f"powerlab set-up: {text}", flush=True)


class Environment:
    """The virtual environment in ``.venv`` and the note inside it that says what it was made from."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "powerlab-setup.json"

    def state(self) -> dict[str, str]:
        """Return what the environment was made from; empty where there is none, or none that works."""
        try:
            noted: dict[str, str] = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        works = self.python.exists() and Path(noted.get("root", "")) == self.root
        return noted if works else {}

    def create(self) -> None:
        """Make the environment anew and bring pip to its pinned version: an old pip knows no build constraints."""
        say(f"making .venv with Python {sys.version_info.major}.{sys.version_info.minor}")
        if self.root not in Path(sys.prefix).parents:
            venv.create(self.folder, clear=True, with_pip=True, symlinks=True)
        else:
            base = getattr(sys, "_base_executable", sys.executable)
            self._run([base, "-m", "venv", "--clear", str(self.folder)], "the virtual environment could not be made")
        lock_text = (self.root / LOCK).read_text(encoding="utf-8")
        self.pip("install", "--upgrade", f"pip=={pinned(lock_text, 'pip')}")

    def install(self, extra: str) -> None:
        """Install the build tools, then powerlab in editable form with one extra."""
        with (self.root / "pyproject.toml").open("rb") as file:
            requirements: list[str] = tomllib.load(file)["build-system"]["requires"]
        say("installing the build tools")
        self.pip("install", "-c", LOCK, *requirements)
        asked = self._output(
            [str(self.python), "-c", _ASK_BACKEND], "the build backend did not say what it needs to compile"
        )
        if needed := json.loads(asked):
            say("this machine lacks " + ", ".join(needed) + ": taking them from the package index")
            self.pip("install", "-c", LOCK, *needed)
        say("installing the dependencies and building the native core: this takes a minute or two")
        self.pip("install", "--no-build-isolation", "-c", LOCK, "-e", f".[{extra}]")

    def rebuild(self) -> None:
        """Build the native core again; the build folder keeps what has not changed."""
        say("building the native core again")
        self.pip("install", "--no-build-isolation", "--no-deps", "-c", LOCK, "-e", ".")

    def note(self, state: dict[str, str], extras: set[str]) -> None:
        """Write down what the environment now holds."""
        text = json.dumps({**state, "extras": ",".join(sorted(extras))}, indent=1)
        self.stamp.write_text(text + "\n", encoding="utf-8")

    def pip(self, *arguments: str) -> None:
        """Run the environment's own pip."""
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", "-qq", *arguments]
        self._run(command, f"'pip {' '.join(arguments)}' failed; its own message stands above")

    def _run(self, command: list[str], failure: str) -> None:
        if subprocess.run(command, cwd=self.root, env=self._clean(), check=False).returncode != 0:
            raise SetupError(f"{failure}.")

    def _output(self, command: list[str], failure: str) -> str:
        done = subprocess.run(command, cwd=self.root, env=self._clean(), check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SetupError(f"{failure}.")
        return done.stdout

    def _clean(self) -> dict[str, str]:
        """Return the environment variables without those that would lead pip or CMake astray."""
        kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}}
        kept["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}"
        return kept


_ASK_BACKEND = """\
import json, sys
sys.path.insert(0, "powerlab/native")
import build_backend
print(json.dumps(build_backend.get_requires_for_build_editable()))
"""


def ensure(environment: Environment, extra: str) -> bool:
    """Bring the environment up to date and return whether there was anything to do."""
    wanted = wanted_state(environment.root)
    noted = environment.state()
    extras = set(noted.get("extras", "").split(",")) - {""}
    if not noted:
        extras = set()
        environment.create()
    if extra not in extras or noted.get("dependencies") != wanted["dependencies"]:
        # The widest set that was there stays there: 'make demo' after 'make test' takes nothing away.
        widest = "dev" if "dev" in extras | {extra} else extra
        environment.install(widest)
        environment.note(wanted, EXTRAS_WITHIN[widest])
        return True
    if any(noted.get(part) != wanted[part] for part in ("native", "packages")):
        environment.rebuild()
        environment.note(wanted, extras)
        return True
    return False


def main() -> int:
    """Run the set-up and return its exit status."""
    if len(sys.argv) != 2 or sys.argv[1] not in EXTRAS_WITHIN:
        print(f"usage: python scripts/setup_venv.py {'|'.join(EXTRAS_WITHIN)}", file=sys.stderr)
        return 2
    started = time.monotonic()
    try:
        changed = ensure(Environment(ROOT), sys.argv[1])
    except (SetupError, OSError) as error:
        print(f"powerlab: set-up failed: {error}", file=sys.stderr)
        return 2
    if changed:
        say(f"done in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
