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
from powerlab.engine.ops import SUPPORTED

MAX_KEPT_BYTES = 3000


def smallest(source, target):
    """Copy the files of ``source`` to ``target`` that take a way no smaller one has taken."""
    edges = Edges()
    for path in sorted(source.iterdir(), key=lambda path: path.stat().st_size):
        data = path.read_bytes()
        if len(data) > MAX_KEPT_BYTES:
            break
        try:
            with edges:
                attempt(data)
                for name in operators(data):
                    edges.add(name)
        except Exception as error:  # a finding is for those who look for them
            print(f"left out {path.name}: {error!r}"[:300], flush=True)
            continue
        if edges.keep_new():
            (target / f"{hashlib.sha1(data).hexdigest()[:12]}.onnx").write_bytes(data)


def operators(data):
    """Return the engine's operators in a file, none where it is no model."""
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        return set()
    return {node.op_type for node in model.graph.node} & SUPPORTED


if __name__ == "__main__":
    smallest(*map(Path, sys.argv[1:]))
