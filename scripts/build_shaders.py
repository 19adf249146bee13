"""Compile the GPU engine's shaders to the SPIR-V that is committed beside them; ``--check`` compares instead.

Needs ``glslangValidator`` and ``spirv-val`` (Debian: glslang-tools, spirv-tools). Shaders that include
``cooperative.glsl`` need newer ones than Debian 12's (glslang 13, SPIRV-Tools 2023.4):

    scripts/newest_lavapipe python3 scripts/build_shaders.py

Without them those shaders are left alone, as long as their sources are those that were compiled, by their digests.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "powerlab" / "engine" / "gpu"
TARGET = ("--target-env", "vulkan1.1")
VARIANTS = {"fp32": (), "fp16": ("-DHALF",)}
ONLY_16_BITS = "_half"
"""How the names of shaders end that compute in 16 bits, and are there for numbers stored in 16 bits only."""

SHADERS = FOLDER / "shaders"
ONLY_32_BITS = SHADERS / "training"
"""The folder of shaders that are there for numbers stored in 32 bits only: models are trained in these."""

MATRICES = "cooperative.glsl"
SOURCES = "sources"
"""The file of the digests: a line for each shader that needs a newer compiler."""

NEWER = {"glslangValidator": "POWERLAB_NEWER_GLSLANG", "spirv-val": "POWERLAB_NEWER_SPIRV_VAL"}
"""Program → environment variable with the command of a newer one."""


def shaders(*, newer: bool) -> Iterator[Path]:
    """Yield the sources that every compiler takes, or those that need a newer one."""
    for source in sorted(SHADERS.rglob("*.comp"), key=lambda path: path.name):
        if (SHADERS / MATRICES in parts(source)) == newer:
            yield source


def variants(source: Path) -> list[str]:
    """Return the variants in which a shader is compiled."""
    if source.stem.endswith(ONLY_16_BITS):
        return ["fp16"]
    return ["fp32"] if source.parent == ONLY_32_BITS else list(VARIANTS)


def parts(source: Path) -> list[Path]:
    """Return a source and what it includes, each once."""
    found = [source]
    for one in found:
        names = re.findall(r'^#include "(.+)"', one.read_text(), re.MULTILINE)
        found += [path for name in names if (path := _included(source, name)) not in found]
    return found


def _included(source: Path, name: str) -> Path:
    own = source.parent / name
    return own if own.exists() else SHADERS / name


def compile_all(out: Path, *, newer: bool = False) -> list[Path]:
    """Compile shaders in their variants into a folder, validate them, and return the files."""
    compiler, judge = (
        shlex.split(os.environ.get(variable, "")) if newer else [program] for program, variable in NEWER.items()
    )
    made = []
    for source in shaders(newer=newer):
        for variant in variants(source):
            target = out / f"{source.stem}.{variant}.spv"
            folders = dict.fromkeys((f"-I{source.parent}", f"-I{SHADERS}"))
            options = ["-V", *TARGET, "-g0", "--quiet", *folders, *VARIANTS[variant], "-o", str(target)]
            subprocess.run([*compiler, *options, str(source)], check=True)
            subprocess.run([*judge, *TARGET, str(target)], check=True)
            made.append(target)
    return made


def digests() -> str:
    """Return a line for each shader that needs a newer compiler: its name and the digest of all its sources."""
    lines = []
    for source in shaders(newer=True):
        text = b"\0".join(path.read_bytes() for path in parts(source))
        lines.append(f"{source.name} {hashlib.blake2b(text, digest_size=16).hexdigest()}\n")
    return "".join(lines)


def have_newer() -> bool:
    """Tell whether the commands of newer programs are known."""
    return all(os.environ.get(variable) for variable in NEWER.values())


def main() -> int:
    """Compile, or compare with what is committed and return 1 where that is another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing them")
    check = parser.parse_args().check
    kept = FOLDER / "spirv"
    own = {source.stem for source in shaders(newer=True)}
    if not have_newer() and (kept / SOURCES).read_text() != digests():
        print(f"{', '.join(sorted(own))} or what they include changed, and need a newer compiler: see --help")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        made = compile_all(Path(folder)) + (compile_all(Path(folder), newer=True) if have_newer() else [])
        names = {path.name for path in made}
        left = [path for path in kept.glob("*.spv") if path.name not in names]
        stale = sorted(path.name for path in left if have_newer() or path.name.split(".")[0] not in own)
        wrong = [path.name for path in made if _bytes(kept / path.name) != path.read_bytes()]
        if check:
            for name in (*stale, *wrong):
                print(f"{name} is not what its shader compiles to; run scripts/build_shaders.py")
            return 1 if stale or wrong else 0
        for path in made:
            (kept / path.name).write_bytes(path.read_bytes())
        for name in stale:
            (kept / name).unlink()
    (kept / SOURCES).write_text(digests())
    return 0


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


if __name__ == "__main__":
    sys.exit(main())
