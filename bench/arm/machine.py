"""A 64-bit Arm machine in a folder, run by qemu-aarch64: Debian's Python for arm64, and wheels from the package index.

Nothing is installed on this machine, and nobody need be root: Debian's packages are fetched with lists of their own and
only unpacked. The Python is of the same version as the one that runs this, so that one lock file serves both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
COMPILER = "aarch64-linux-gnu-g++"

CORES = {
    "cortex-a53": ("0x41", "0xd03"),
    "cortex-a57": ("0x41", "0xd07"),
    "cortex-a72": ("0x41", "0xd08"),
    "cortex-a76": ("0x41", "0xd0b"),
    "neoverse-n1": ("0x41", "0xd0c"),
    "neoverse-v1": ("0x41", "0xd40"),
    "neoverse-n2": ("0x41", "0xd49"),
}
"""QEMU's names of cores, with what /proc/cpuinfo says of them: implementer and part."""

_ARMV8_2 = {"cortex-a76", "neoverse-n1", "neoverse-v1", "neoverse-n2"}
_MANYLINUX = ("manylinux2014", *(f"manylinux_2_{minor}" for minor in (17, 24, 26, 27, 28, 31, 34, 35, 36)))


class ArmMachineError(Exception):
    """What the machine lacks, in a sentence."""


def run(command: Iterable[str | Path], cwd: Path | None = None, **environment: str) -> str:
    """Run a program and return what it wrote; raise ArmMachineError where it is missing or fails."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise ArmMachineError(f"{words[0]} is not installed.")
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ArmMachineError(f"{' '.join(words)[:200]} failed: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


class ArmMachine:
    """The machine in ``folder``, made by :meth:`fetch` and :meth:`install`; both do only what was not done before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.root = self.folder / "root"
        self.site = self.folder / "site"

    def fetch(self) -> None:
        """Fetch and unpack Python.

        Raises:
            ArmMachineError: this is no Debian, or it offers no such Python.
        """
        if (self.folder / "fetched").exists():
            return
        packages = self.folder / "packages"
        for name in ("lists/partial", "cache/archives/partial", "packages"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        settings = (
            *("APT::Architecture=arm64", "APT::Architectures=arm64", "Acquire::Languages=none", "Debug::NoLocking=1"),
            *("APT::Install-Recommends=false", "APT::Sandbox::User=root"),
            *(f"Dir::State::Lists={self.folder}/lists", f"Dir::State::status={self.folder}/status"),
            f"Dir::Cache={self.folder}/cache",
        )
        apt = ["apt-get", "-qq", *(word for setting in settings for word in ("-o", setting))]
        run([*apt, "update"])
        needed = (f"python{VERSION}-minimal", f"libpython{VERSION}-stdlib", "libstdc++6")
        run([*apt, "--yes", "--download-only", "install", *needed])
        # Its headers alone: what it depends on are those of the C library, which the cross compiler has.
        run([*apt, "download", f"libpython{VERSION}-dev"], cwd=packages)
        for path in sorted([*packages.glob("*.deb"), *(self.folder / "cache/archives").glob("*.deb")]):
            run(["dpkg-deb", "-x", path, self.root])
        (self.folder / "fetched").touch()

    def install(self, *requirements: str | Path) -> None:
        """Install wheels and what they depend on, at the versions of requirements.lock."""
        platforms = ["linux_aarch64", *(f"{name}_aarch64" for name in _MANYLINUX)]
        run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", self.site),
                *("--only-binary", ":all:", "--constraint", ROOT / "requirements.lock"),
                *("--implementation", "cp", "--python-version", VERSION, "--abi", f"cp{VERSION.replace('.', '')}"),
                *(word for platform in platforms for word in ("--platform", platform)),
                *requirements,
            ]
        )

    def build_wheel(self) -> Path:
        """Build powerlab's wheel with the cross compiler and return where it lies.

        The build is the usual one; Python's own switches for cross-compiling make it believe in the other machine: the
        build data of the unpacked Python and the name of the platform.
        """
        data, out = self.folder / "sysconfig", self.folder / "wheels"
        data.mkdir(exist_ok=True)
        (described,) = (self.root / f"usr/lib/python{VERSION}").glob("_sysconfigdata__aarch64-linux-gnu.py")
        shutil.copy(described, data)
        headers = self.root / "usr/include"
        options = {
            "CMAKE_SYSTEM_NAME": "Linux",
            "CMAKE_SYSTEM_PROCESSOR": "aarch64",
            "CMAKE_CXX_COMPILER": COMPILER,
            "CMAKE_CXX_FLAGS": f"-idirafter{headers}",
            "Python_INCLUDE_DIR": f"{headers}/python{VERSION}",
        }
        if shutil.which(COMPILER) is None:
            raise ArmMachineError(f"{COMPILER} is not installed (Debian: apt install g++-aarch64-linux-gnu).")
        shutil.rmtree(out, ignore_errors=True)
        run(
            [
                *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
                *("--config-settings", f"build-dir={self.folder}/build", "--wheel-dir", out, ROOT),
            ],
            PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            PYTHONPATH=str(data),
            _PYTHON_SYSCONFIGDATA_NAME=described.stem,
            _PYTHON_HOST_PLATFORM="linux-aarch64",
            CMAKE_ARGS=" ".join(f"-D{name}={value}" for name, value in options.items()),
        )
        (wheel,) = out.glob("*.whl")
        return wheel

    def claim_core(self, core: str) -> None:
        """Let /proc/cpuinfo speak of ``core``: QEMU's emulator of user programs shows that of the host."""
        implementer, part = CORES[core]
        features = "fp asimd evtstrm crc32" + (" atomics fphp asimdhp asimdrdm asimddp" if core in _ARMV8_2 else "")
        path = self.root / "proc/cpuinfo"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"processor\t: 0\nFeatures\t: {features}\nCPU implementer\t: {implementer}\nCPU architecture: 8\n"
            f"CPU variant\t: 0x1\nCPU part\t: {part}\nCPU revision\t: 1\n\n"
        )

    def python(
        self,
        *arguments: str | Path,
        core: str,
        options: Iterable[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run the machine's Python on an emulated core and return what it wrote.

        Args:
            arguments: Python's.
            core: QEMU's name of it.
            options: further ones of the emulator.
            environment: further variables.

        Raises:
            ArmMachineError: it failed.
        """
        self.claim_core(core)
        return run(
            [
                "qemu-aarch64",
                "-cpu",
                core,
                "-L",
                self.root,
                *options,
                self.root / f"usr/bin/python{VERSION}",
                *arguments,
            ],
            PYTHONPATH=str(self.site),
            PYTHONSAFEPATH="1",  # else the folder this runs in would come first
            PYTHONDONTWRITEBYTECODE="1",
            **(environment or {}),
        )
