"""DFT and STFT become products with the matrix of the transform.

Networks transform a few hundred to a few thousand elements, and by matrix many rows at once.

Source: https://onnx.ai/onnx/operators/onnx__DFT.html and onnx__STFT.html.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.spectra import frames_of, transform_of
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _dft(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    add, transform = Expansion(view, rewriter), transform_of(view)
    matrix = transform.matrix()
    source, rank = view.node.inputs[0], len(view.shape(0))
    read = matrix.shape[0] // transform.parts
    if read < transform.given:
        source = add("Slice", source, add.ints([0]), add.ints([read]), add.ints([transform.axis]))
    last = (*(axis for axis in range(rank - 1) if axis != transform.axis), transform.axis, rank - 1)
    rows = add("Transpose", source, perm=last)
    rows = add.reshape(rows, (*add.shape(rows)[:-2], matrix.shape[0]))
    product = add("MatMul", rows, add.floats(matrix))
    made = add.reshape(product, (*add.shape(product)[:-1], *transform.made))
    return add.ending(add("Transpose", made, perm=tuple(last.index(axis) for axis in range(rank))))


def _stft(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    add, frames = Expansion(view, rewriter), frames_of(view)
    transform, batch = frames.transform, view.shape(0)[0]
    places = frames.step * np.arange(frames.count)[:, None] + np.arange(transform.length)
    rows = add("Gather", view.node.inputs[0], add.whole(places), axis=1)
    rows = add.reshape(rows, (batch, frames.count, transform.length, transform.parts))
    if view.has(2):
        rows = add("Mul", rows, add.reshape(view.node.inputs[2], (transform.length, 1)))
    matrix = transform.matrix()
    product = add("MatMul", add.reshape(rows, (batch, frames.count, matrix.shape[0])), add.floats(matrix))
    return add.ending(add.reshape(product, (batch, frames.count, *transform.made)))


def expand_spectra(graph: Graph) -> Graph:
    """Return the graph without DFT and STFT."""
    return rewrite_nodes(graph, {"DFT": _dft, "STFT": _stft})
