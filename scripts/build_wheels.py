"""Write wheels of powerlab for x86-64 and 64-bit Arm into dist/, for pip on any Linux with glibc 2.17 or later.

    python scripts/build_wheels.py [--only aarch64]

Both are built on either kind of machine with the compiler from the ``ziglang`` wheel, which carries the C library of
every version and links libc++ statically: nobody who installs a wheel needs a compiler. A wheel is for one version of
Python, that of the interpreter which runs this; musl is left out, as no board powerlab knows runs it.
"""

from __future__ import annotations

import argparse
import os
import platform
import pprint
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

_COMPILER_VARIABLES = {"CXX", "CC", "CMAKE_CXX_COMPILER_LAUNCHER"}
ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = "2.17"
_TAG = f"manylinux_{GLIBC.replace('.', '_')}_{{0}}.manylinux2014_{{0}}"


def build(architecture: str) -> Path:
    """Build one wheel and return its path in dist/.

    The build is the usual one; Python's own switches for cross-compiling (those of its ``configure``) make it believe
    that it runs on the other machine.
    """
    folder = ROOT / "build" / "wheels" / architecture
    data, headers, made = folder / "sysconfig", folder / "headers", folder / "made"
    shutil.rmtree(made, ignore_errors=True)
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _COMPILER_VARIABLES},
        "POWERLAB_TARGET": f"{architecture}-linux-gnu.{GLIBC}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": str(data),
        "_PYTHON_SYSCONFIGDATA_NAME": _write_build_data(architecture, data),
        "_PYTHON_HOST_PLATFORM": f"linux-{architecture}",
        "CMAKE_ARGS": f"-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR={architecture} "
        f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')} "
        f"-DCMAKE_CXX_FLAGS=-idirafter{_write_headers(architecture, headers)}",
    }
    pip: list[str | Path] = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    settings: list[str | Path] = ["--config-settings", f"build-dir={folder / 'cmake'}", "--wheel-dir", made]
    subprocess.run([*pip, *settings, ROOT], env=environment, check=True)
    (plain,) = made.glob("powerlab-*.whl")
    retag: list[str | Path] = [sys.executable, "-m", "wheel", "tags", "--remove"]
    retag += ["--platform-tag", _TAG.format(architecture), plain]
    named = subprocess.run(retag, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
    DIST.mkdir(exist_ok=True)
    return Path(shutil.move(made / named, DIST / named))


def _write_build_data(architecture: str, folder: Path) -> str:
    """Write what ``sysconfig`` knows of this Python as if built for ``architecture``; return the module's name."""
    host = platform.machine()
    told = {
        name: value.replace(host, architecture) if isinstance(value, str) else value
        for name, value in sysconfig.get_config_vars().items()
        if name not in {"srcdir", "installed_base", "base", "prefix", "exec_prefix"}
    }
    name = f"_sysconfigdata__{architecture}-linux-gnu"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(f"build_time_vars = {pprint.pformat(told)}\n", encoding="utf-8")
    return name


def _write_headers(architecture: str, folder: Path) -> Path:
    """Write ``pyconfig.h`` where Debian's Python looks for that of ``architecture``: both are LP64."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = Path("/usr/include", f"{platform.machine()}-linux-gnu", version, "pyconfig.h")
    target = folder / f"{architecture}-linux-gnu" / version
    target.mkdir(parents=True, exist_ok=True)
    if found.is_file():
        shutil.copy(found, target)
    return folder


def main() -> None:
    """Build a wheel per architecture, or the one that is asked for, and print where they are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=ARCHITECTURES, help="build the wheel for this architecture alone")
    only = parser.parse_args().only
    for architecture in (only,) if only else ARCHITECTURES:
        print(build(architecture).relative_to(ROOT), flush=True)


if __name__ == "__main__":
    main()
