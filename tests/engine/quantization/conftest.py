"""A trained network, for whatever quantizes it."""

from __future__ import annotations

import pytest
from trained import trained_network

from powerlab.engine import Session


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def trained(folder):
    """Return the path of a trained model."""

    def session_of(data):
        (folder / "part.onnx").write_bytes(data)
        return Session(folder / "part.onnx", threads=1)

    path = folder / "trained.onnx"
    path.write_bytes(trained_network(session_of))
    return path
