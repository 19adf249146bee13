"""Networks drawn at random of what moves tensors, and of layers between that read them where they then lie."""

from __future__ import annotations

import math

import numpy as np
from engine_models import onnx_bytes
from hypothesis import strategies as st
from onnx import helper


class Moves:
    """Grows an ONNX graph of one tensor; earlier ones may be read again."""

    def __init__(self, shape, seed):
        self.input = shape
        self.nodes = []
        self.constants = {}
        self.shapes = {"x": shape}
        self.last = "x"
        self._generator = np.random.default_rng(seed)

    @property
    def shape(self):
        return self.shapes[self.last]

    def integers(self, *values):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(values, np.int64)
        return name

    def floats(self, *shape):
        name = f"c{len(self.constants)}"
        values = self._generator.standard_normal(shape) / np.sqrt(shape[0])
        self.constants[name] = values.astype(np.float32)
        return name

    def add(self, operator, inputs, shape, **attributes):
        source, self.last = self.last, f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, [source, *inputs], [self.last], self.last, **attributes))
        self.shapes[self.last] = tuple(shape)


def transpose(draw, moves):
    axes = len(moves.shape)
    usual = [(0, *range(2, axes), 1), (0, axes - 1, *range(1, axes - 1))] if axes > 2 else []
    order = draw(st.one_of(st.sampled_from(usual), st.permutations(range(axes)))) if usual else tuple(range(axes))[::-1]
    moves.add("Transpose", [], [moves.shape[axis] for axis in order], perm=list(order))


def merge(draw, moves):
    axes = len(moves.shape)
    if axes < 3:
        return
    first = draw(st.integers(1, axes - 2))
    shape = (*moves.shape[:first], math.prod(moves.shape[first : first + 2]), *moves.shape[first + 2 :])
    moves.add("Reshape", [moves.integers(*shape)], shape)


def part(draw, moves):
    if len(moves.shape) > 4:
        return
    axis = draw(st.integers(1, len(moves.shape) - 1))
    size = moves.shape[axis]
    outer = draw(st.sampled_from([one for one in range(1, size + 1) if size % one == 0]))
    shape = (*moves.shape[:axis], outer, size // outer, *moves.shape[axis + 1 :])
    moves.add("Reshape", [moves.integers(*shape)], shape)


def cut(draw, moves):
    axis = draw(st.integers(1, len(moves.shape) - 1))
    size = moves.shape[axis]
    begin = draw(st.integers(0, size - 1))
    end = draw(st.integers(begin + 1, size))
    shape = (*moves.shape[:axis], end - begin, *moves.shape[axis + 1 :])
    moves.add("Slice", [moves.integers(begin), moves.integers(end), moves.integers(axis)], shape)


def twice(draw, moves):
    axis = draw(st.integers(1, len(moves.shape) - 1))
    if math.prod(moves.shape) < 10_000:
        shape = (*moves.shape[:axis], 2 * moves.shape[axis], *moves.shape[axis + 1 :])
        moves.add("Concat", [moves.last], shape, axis=axis)


def halves(draw, moves):
    """Split an axis and go on with one part; the other may be read later."""
    axis = draw(st.integers(1, len(moves.shape) - 1))
    size = moves.shape[axis]
    if size < 2:
        return
    sizes = (size // 2, size - size // 2)
    source, names = moves.last, [f"t{len(moves.nodes)}.{half}" for half in (0, 1)]
    moves.nodes.append(helper.make_node("Split", [source, moves.integers(*sizes)], names, names[0], axis=axis))
    for name, one in zip(names, sizes, strict=True):
        moves.shapes[name] = (*moves.shape[:axis], one, *moves.shape[axis + 1 :])
    moves.last = draw(st.sampled_from(names))


def linear(draw, moves):
    made = draw(st.integers(1, 40))
    moves.add("MatMul", [moves.floats(moves.shape[-1], made)], (*moves.shape[:-1], made))


def layer_norm(_draw, moves):
    if moves.shape[-1] > 2:
        moves.add("LayerNormalization", [moves.floats(moves.shape[-1])], moves.shape, axis=-1, epsilon=0.1)


def softmax(draw, moves):
    moves.add("Softmax", [], moves.shape, axis=draw(st.integers(1, len(moves.shape) - 1)))


def activation(draw, moves):
    moves.add(draw(st.sampled_from(["Relu", "Sigmoid", "Tanh"])), [], moves.shape)


def scale(draw, moves):
    axis = draw(st.integers(1, len(moves.shape) - 1))
    shape = [1] * len(moves.shape)
    shape[axis] = moves.shape[axis]
    moves.add(draw(st.sampled_from(["Add", "Mul"])), [moves.floats(*shape)], moves.shape)


def convolution(draw, moves):
    if len(moves.shape) not in {3, 4}:
        return
    made, channels = draw(st.integers(1, 40)), moves.shape[1]
    apart = len(moves.shape) - 2
    kernel = draw(st.sampled_from([1, 3]))
    weights = moves.floats(made, channels, *[kernel] * apart)
    moves.add("Conv", [weights], (moves.shape[0], made, *moves.shape[2:]), pads=[kernel // 2] * 2 * apart)


def depthwise(_draw, moves):
    if len(moves.shape) == 4:
        channels = moves.shape[1]
        moves.add("Conv", [moves.floats(channels, 1, 3, 3)], moves.shape, pads=[1] * 4, group=channels)


def pool(draw, moves):
    if len(moves.shape) == 4:
        kind = draw(st.sampled_from(["MaxPool", "AveragePool"]))
        moves.add(kind, [], moves.shape, kernel_shape=[3, 3], pads=[1] * 4)


def mean(draw, moves):
    axis, keeps = draw(st.integers(1, len(moves.shape) - 1)), draw(st.integers(0, 1)) or len(moves.shape) < 3
    shape = (*moves.shape[:axis], *([1] if keeps else []), *moves.shape[axis + 1 :])
    moves.add("ReduceMean", [], shape, axes=[axis], keepdims=int(keeps))


def residual(draw, moves):
    same = [name for name, shape in moves.shapes.items() if shape == moves.shape]
    moves.add("Add", [draw(st.sampled_from(same))], moves.shape)


def scores(draw, moves):
    """Multiply by the transpose of an earlier tensor of the same shape, as attention does."""
    if len(moves.shape) == 2 or math.prod(moves.shape) > 10_000:
        return
    same = [name for name, shape in moves.shapes.items() if shape == moves.shape]
    source, axes = moves.last, len(moves.shape)
    moves.last = draw(st.sampled_from(same))
    order = [*range(axes - 2), axes - 1, axes - 2]
    moves.add("Transpose", [], [moves.shape[axis] for axis in order], perm=order)
    other, moves.last = moves.last, source
    moves.add("MatMul", [other], (*moves.shape[:-1], moves.shape[-2]))
    moves.add("Softmax", [], moves.shape, axis=-1)


_MOVES = (transpose, transpose, merge, part, cut, twice, halves)
_LAYERS = (linear, layer_norm, softmax, activation, scale, convolution, depthwise, pool, mean, residual, scores)


@st.composite
def moving_networks(draw):
    """Return an ONNX file with the input ``x``, and one to three outputs."""
    shape = draw(st.tuples(st.integers(1, 2), *[st.integers(1, 20)] * 3))
    moves = Moves(shape, draw(st.integers(0, 2**16)))
    for _ in range(draw(st.integers(2, 8))):
        draw(st.sampled_from(_MOVES + _LAYERS))(draw, moves)
    moves.add("Relu", [], moves.shape)  # an output at least
    seen = draw(st.lists(st.sampled_from([node.output[0] for node in moves.nodes]), max_size=2))
    return onnx_bytes(moves.nodes, {"x": shape}, list(dict.fromkeys((moves.last, *seen))), constants=moves.constants)
