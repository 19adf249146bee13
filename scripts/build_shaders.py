"""Compile the GPU engine's shaders to the SPIR-V that is committed beside them; ``--check`` compares instead.

Needs ``glslangValidator`` and ``spirv-val`` (Debian: glslang-tools, spirv-tools).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "powerlab" / "engine" / "gpu"
TARGET = ("--target-env", "vulkan1.1")
VARIANTS = {"fp32": (), "fp16": ("-DHALF",)}
ONLY_16_BITS = "_half"
"""How the names of shaders end that compute in 16 bits, and are there for numbers stored in 16 bits only."""


def compile_all(out: Path) -> list[Path]:
    """Compile every shader in its variants into a folder, validate them, and return the files."""
    made = []
    for source in sorted((FOLDER / "shaders").glob("*.comp")):
        for variant, defines in VARIANTS.items():
            if source.stem.endswith(ONLY_16_BITS) and variant != "fp16":
                continue
            target = out / f"{source.stem}.{variant}.spv"
            includes = f"-I{source.parent}"
            command = ["glslangValidator", "-V", *TARGET, "-g0", "--quiet", includes, *defines, "-o", str(target)]
            subprocess.run([*command, str(source)], check=True)
            subprocess.run(["spirv-val", *TARGET, str(target)], check=True)  # noqa: S607
            made.append(target)
    return made


def main() -> int:
    """Compile, or compare with what is committed and return 1 where that is another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing them")
    check = parser.parse_args().check
    kept = FOLDER / "spirv"
    with tempfile.TemporaryDirectory() as folder:
        made = compile_all(Path(folder))
        names = {path.name for path in made}
        stale = sorted(path.name for path in kept.glob("*.spv") if path.name not in names)
        stale += [path.name for path in made if not (kept / path.name).is_file()]
        stale += [
            path.name
            for path in made
            if path.name not in stale and path.read_bytes() != (kept / path.name).read_bytes()
        ]
        if check:
            for name in stale:
                print(f"{name} is not what its shader compiles to; run scripts/build_shaders.py")
            return 1 if stale else 0
        kept.mkdir(exist_ok=True)
        for path in made:
            (kept / path.name).write_bytes(path.read_bytes())
        for path in kept.glob("*.spv"):
            if path.name not in names:
                path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
