"""Every operator of the lowering contract in plain numpy, float64 inside: slow, short, and the judge of the passes."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from powerlab.engine.graph import Graph, Node, convolutions_of


def _clamp(values, attributes):
    low, high = attributes["clamp"]
    sloped = np.where(values < 0, attributes.get("slope", 1.0) * values, values)
    return np.minimum(np.maximum(sloped, low), high)


def _windows(x, kernel, attributes, fill):
    """Return (N, C, oh, ow, kh, kw)."""
    top, left, bottom, right = attributes["pads"]
    strides, dilations = attributes["strides"], attributes.get("dilations", (1, 1))
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    found = sliding_window_view(padded, reach, axis=(2, 3))
    return found[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


def fused_conv(attributes, x, weight, bias, residual):
    outputs, _, *kernel = weight.shape
    group = attributes["group"]
    windows = _windows(x, kernel, attributes, 0.0)
    parts = [
        np.tensordot(part, w, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
        for part, w in zip(np.split(windows, group, axis=1), np.split(weight, group), strict=True)
    ]
    result = np.concatenate(parts, axis=1)
    if bias is not None:
        result = result + bias.reshape(1, outputs, 1, 1)
    if residual is not None:
        assert residual.shape == result.shape
        result = result + residual
    return _clamp(result, attributes)


def fused_gemm(attributes, x, weight, bias):
    return _clamp(x @ weight.T + (0 if bias is None else bias), attributes)


def max_pool(attributes, x):
    windows = _windows(x, attributes["kernel"], attributes, -np.inf)
    return windows.max(axis=(4, 5))


def average_pool(attributes, x):
    kernel = attributes["kernel"]
    total = _windows(x, kernel, attributes, 0.0).sum(axis=(4, 5))
    if attributes["count_include_pad"]:
        return total / np.prod(kernel)
    return total / _windows(np.ones_like(x), kernel, attributes, 0.0).sum(axis=(4, 5))


def lrn(attributes, x):
    size = attributes["size"]
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = np.pad(x**2, ((0, 0), (before, after), (0, 0), (0, 0)))
    total = sliding_window_view(squares, size, axis=1).sum(axis=-1)
    return x / (attributes["bias"] + attributes["alpha"] / size * total) ** attributes["beta"]


def softmax(attributes, x):
    exponentials = np.exp(x - x.max(axis=attributes["axis"], keepdims=True))
    return exponentials / exponentials.sum(axis=attributes["axis"], keepdims=True)


def scale_shift(attributes, x, scale, shift):
    axes = (-1, *(1,) * (x.ndim - 2))
    return _clamp(x * scale.reshape(axes) + shift.reshape(axes), attributes)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, weights, recurrence, bias, state, *, backwards):
    """Return the hidden states (steps, batch, hidden) of one direction, then the last of them and the last cells."""
    outputs, (hidden, cells) = [], state
    for step in reversed(x) if backwards else x:
        gates = step @ weights.T + hidden @ recurrence.T + bias
        given, shown, kept, candidate = np.split(gates, 4, axis=1)
        cells = _sigmoid(kept) * cells + _sigmoid(given) * np.tanh(candidate)
        hidden = _sigmoid(shown) * np.tanh(cells)
        outputs.append(hidden)
    return np.array(outputs[::-1] if backwards else outputs), hidden, cells


def fused_lstm(attributes, x, weights, recurrence, *more):
    directions, rows, units = recurrence.shape
    zeros = np.zeros((directions, x.shape[1], units))
    bias, *state = more
    hidden, cells = (zeros if value is None else value for value in state)
    found = [
        lstm(
            x,
            weights[i],
            recurrence[i],
            0 if bias is None else bias[i, :rows] + bias[i, rows:],
            (hidden[i], cells[i]),
            backwards=i == 1 or attributes["direction"] == "reverse",
        )
        for i in range(directions)
    ]
    sequences, last, last_cells = zip(*found, strict=True)
    return np.stack(sequences, axis=1), np.array(last), np.array(last_cells)


_erf = np.vectorize(math.erf)

OPERATORS = {
    "Elu": lambda attributes, x: np.where(x < 0, attributes["alpha"] * np.expm1(np.minimum(x, 0)), x),
    "Erf": lambda _, x: _erf(x),
    "Exp": lambda _, x: np.exp(x),
    "Gelu": lambda _, x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "HardSigmoid": lambda attributes, x: np.clip(attributes["alpha"] * x + attributes["beta"], 0, 1),
    "HardSwish": lambda _, x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Multiply": lambda attributes, x, y: _clamp(x * y, attributes),
    "Sigmoid": lambda _, x: _sigmoid(x),
    "Silu": lambda _, x: x * _sigmoid(x),
    "Tanh": lambda _, x: np.tanh(x),
    "Add": lambda attributes, x, y: _clamp(x + y, attributes),
    "AveragePool": average_pool,
    "Clamp": lambda attributes, x: _clamp(x, attributes),
    "Concat": lambda attributes, *parts: np.concatenate(parts, axis=attributes["axis"]),
    "FusedConv": fused_conv,
    "FusedGemm": fused_gemm,
    "FusedLstm": fused_lstm,
    "GlobalAveragePool": lambda attributes, x: x.mean(axis=(2, 3), keepdims=True),
    "LRN": lrn,
    "MaxPool": max_pool,
    "Resize": lambda attributes, x: x.repeat(attributes["factors"][0], axis=2).repeat(attributes["factors"][1], axis=3),
    "ScaleShift": scale_shift,
    "Softmax": softmax,
    "Transpose": lambda attributes, x: x.transpose(attributes["perm"]),
}


def run_node(graph: Graph, node: Node, values):
    if node.op_type == "Chain":
        between = dict(values)
        for convolution in convolutions_of(node):
            between[convolution.outputs[0]] = run_node(graph, convolution, between)
        return between[node.outputs[0]]
    if node.op_type == "Reshape":
        return values[node.inputs[0]].reshape(graph.shape(node.outputs[0]))
    return OPERATORS[node.op_type](node.attributes, *(values[name] if name else None for name in node.inputs))


def run_graph(graph: Graph, inputs):
    """Return the outputs of a lowered graph, checking every shape on the way."""
    values = {name: value.astype(np.float64) for name, value in (*graph.constants.items(), *inputs.items())}
    for node in graph.nodes:
        found = run_node(graph, node, values)
        for name, result in zip(node.outputs, found if isinstance(found, tuple) else (found,), strict=False):
            if name:
                assert result.shape == graph.shape(name), f"{node}: {result.shape}"
                values[name] = result.astype(np.float32).astype(np.float64)
    return {info.name: values[info.name].astype(np.float32) for info in graph.outputs}
