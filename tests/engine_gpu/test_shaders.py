"""The committed SPIR-V is what the shaders compile to."""

from __future__ import annotations

import os
import shutil

import pytest

import build_shaders


@pytest.mark.skipif(
    not os.environ.get("CI") and not (shutil.which("glslangValidator") and shutil.which("spirv-val")),
    reason="glslangValidator or spirv-val is not installed",
)
def test_the_committed_kernels_are_those_of_the_shaders(tmp_path):
    made = build_shaders.compile_all(tmp_path)
    assert {path.name for path in made} == {path.name for path in (build_shaders.FOLDER / "spirv").glob("*.spv")}
    for path in made:
        assert path.read_bytes() == (build_shaders.FOLDER / "spirv" / path.name).read_bytes(), path.name
