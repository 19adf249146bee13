"""The bench of loading times both engines on the same file."""

from __future__ import annotations

import pytest

from bench.engine import loading
from powerlab.backends.onnx_export import export_onnx
from powerlab.engine.frontend.load import load_graph

pytestmark = pytest.mark.campaign


def test_both_engines_load_the_file(tmp_path) -> None:
    path = tmp_path / "small.onnx"
    path.write_bytes(export_onnx(load_graph("squeezenet@64")))
    found = loading.compare(path, 1, tmp_path / "cache", rounds=1)
    assert found.keys() == loading.PROGRAMS.keys()
    assert all(len(times) == 1 and 0 < times[0] < 60 for times in found.values())
