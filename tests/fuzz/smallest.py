"""Keep the least of a corpus: the smallest files that together take all its ways through the engine.

python -W ignore -m fuzz.smallest FROM TO
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from fuzz.edges import Edges
from fuzz.target import attempt
from powerlab.engine.operators import OPERATORS

MAX_KEPT_BYTES = 3000


def smallest(source, target):
    """Copy the files of ``source`` to ``target`` that take a way no smaller one has taken."""
    edges = Edges()
    for data in sorted((path.read_bytes() for path in source.iterdir()), key=len):
        if len(data) > MAX_KEPT_BYTES:
            break
        with edges:
            attempt(data)
            for name in operators(data):
                edges.add(name)
        if edges.keep_new():
            (target / f"{hashlib.sha1(data).hexdigest()[:12]}.onnx").write_bytes(data)


def operators(data):
    """Return the engine's operators in a file, none where it is no model."""
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        return set()
    return {node.op_type for node in model.graph.node} & OPERATORS.keys()


if __name__ == "__main__":
    smallest(*map(Path, sys.argv[1:]))
