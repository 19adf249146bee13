"""The committed SPIR-V is what the shaders compile to, and what needs a newer compiler is what was compiled by one."""

from __future__ import annotations

import os
import shutil

import pytest

import build_shaders

KEPT = build_shaders.FOLDER / "spirv"


@pytest.mark.campaign(minutes=0.5)
@pytest.mark.skipif(
    not os.environ.get("CI") and not (shutil.which("glslangValidator") and shutil.which("spirv-val")),
    reason="glslangValidator or spirv-val is not installed",
)
def test_the_committed_kernels_are_those_of_the_shaders(tmp_path):
    made = build_shaders.compile_all(tmp_path)
    if build_shaders.have_newer():
        made += build_shaders.compile_all(tmp_path, newer=True)
    for path in made:
        assert path.read_bytes() == (KEPT / path.name).read_bytes(), path.name


def test_every_committed_kernel_has_a_shader():
    sources = [one for newer in (False, True) for one in build_shaders.shaders(newer=newer)]
    assert {path.name.split(".")[0] for path in KEPT.glob("*.spv")} == {source.stem for source in sources}


def test_shaders_for_a_newer_compiler_are_those_that_were_compiled():
    assert (KEPT / build_shaders.SOURCES).read_text() == build_shaders.digests()
    assert [source.stem for source in build_shaders.shaders(newer=True)] == [
        "attention_matrix_half",
        "matrix_direct_half",
        "matrix_half",
        "product_matrix_half",
        "quant_matrix",
        "volume_matrix_direct_half",
        "volume_matrix_half",
        "volume_quant_matrix",
    ]
