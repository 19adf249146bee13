"""Every operator of the lowering contract in plain numpy, float64 inside: slow, short, and the judge of the passes."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from powerlab.engine.ir.graph import Graph, Node, convolutions_of


def _clamp(values, attributes):
    low, high = attributes["clamp"]
    sloped = np.where(values < 0, attributes.get("slope", 1.0) * values, values)
    clamped = np.minimum(np.maximum(sloped, low), high)
    function = attributes.get("function")
    return OPERATORS[function](attributes, clamped) if function else clamped


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


def fused_volume_conv(attributes, x, weight, bias, _residual):
    before, after = attributes["pads"][:3], attributes["pads"][3:]
    padded = np.pad(x, ((0, 0), (0, 0), *zip(before, after, strict=True)))
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], attributes["dilations"], strict=True)]
    every = [slice(None, None, step) for step in (*attributes["strides"], *attributes["dilations"])]
    windows = sliding_window_view(padded, reach, axis=(2, 3, 4))[:, :, *every]
    result = np.tensordot(windows, weight, axes=((1, 5, 6, 7), (1, 2, 3, 4))).transpose(0, 4, 1, 2, 3)
    return _clamp(result + (0 if bias is None else bias.reshape(-1, 1, 1, 1)), attributes)


def fused_conv_transpose(attributes, x, weight, bias, _residual, shape):
    """Spread each pixel of x over the kernel's taps; ``shape`` says how far the result reaches."""
    group, (stride_h, stride_w), dilations = attributes["group"], attributes["strides"], attributes["dilations"]
    outputs, _, kernel_h, kernel_w = weight.shape
    top, left = attributes["pads"]
    rows, columns = x.shape[2:]
    whole = np.zeros(
        (
            x.shape[0],
            outputs,
            max(shape[2] + top, (rows - 1) * stride_h + (kernel_h - 1) * dilations[0] + 1),
            max(shape[3] + left, (columns - 1) * stride_w + (kernel_w - 1) * dilations[1] + 1),
        )
    )
    for i, j in np.ndindex(kernel_h, kernel_w):
        parts = [
            np.tensordot(part, taps, axes=((1,), (1,))).transpose(0, 3, 1, 2)
            for part, taps in zip(np.split(x, group, axis=1), np.split(weight[:, :, i, j], group), strict=True)
        ]
        at, along = i * dilations[0], j * dilations[1]
        whole[:, :, at : at + rows * stride_h : stride_h, along : along + columns * stride_w : stride_w][
            :, :, :rows, :columns
        ] += np.concatenate(parts, axis=1)
    result = whole[:, :, top : top + shape[2], left : left + shape[3]]
    return _clamp(result + (0 if bias is None else bias.reshape(1, outputs, 1, 1)), attributes)


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


def pool(attributes, x):
    kind = attributes["kind"]
    if kind == "max":
        return _windows(x, attributes["kernel"], attributes, -np.inf).max(axis=(4, 5))
    if kind == "lp":
        sizes = _windows(np.abs(x), attributes["kernel"], attributes, 0.0)
        most = sizes.max(axis=(4, 5))  # taken out first: high powers leave even float64
        shares = sizes / np.where(most > 0, most, 1)[..., None, None]
        return most * (shares ** attributes["p"]).sum(axis=(4, 5)) ** (1 / attributes["p"])
    top, left, bottom, right = (
        pad - own for pad, own in zip(attributes["pads"], attributes["counted_pads"], strict=True)
    )
    counted = np.pad(
        np.ones([size + sum(attributes["counted_pads"][i::2]) for i, size in enumerate(x.shape[2:])]),
        ((top, bottom), (left, right)),
    )
    unpadded = {**attributes, "pads": (0, 0, 0, 0)}
    counts = _windows(counted[None, None], attributes["kernel"], unpadded, 0.0).sum(axis=(4, 5))
    return _windows(x, attributes["kernel"], attributes, 0.0).sum(axis=(4, 5)) / counts


def interpolate(attributes, x, rows, columns):
    def along_last(values, taps):
        return sum(
            values[..., np.maximum(place, 0).astype(int)] * weight
            for place, weight in zip(taps[..., 0].T, taps[..., 1].T, strict=True)
        )

    result = along_last(along_last(x, columns).swapaxes(2, 3), rows).swapaxes(2, 3)
    outside = (rows[:, 0, 0] < 0)[:, None] | (columns[:, 0, 0] < 0)
    return np.where(outside, attributes["extrapolation"], result)


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


CELL_FUNCTIONS = {
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "elu": lambda x, alpha, _: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "hardsigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "leakyrelu": lambda x, alpha, _: np.where(x < 0, alpha * x, x),
    "relu": lambda x, *_: np.maximum(x, 0),
    "scaledtanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "sigmoid": lambda x, *_: _sigmoid(x),
    "softplus": lambda x, *_: np.logaddexp(0, x),
    "softsign": lambda x, *_: x / (1 + np.abs(x)),
    "tanh": lambda x, *_: np.tanh(x),
    "thresholdedrelu": lambda x, alpha, _: np.where(x >= alpha, x, 0),
}


def _rnn_step(cell, x, hidden, cells):
    (f,), (w,), (r,), (b, c) = cell.functions, cell.weights, cell.recurrence, cell.bias
    return f(x @ w.T + hidden @ r.T + b[0] + c[0]), cells


def _gru_step(cell, x, hidden, cells):
    (f, g), (wz, wr, wh), (rz, rr, rh), (b, c) = cell.functions, cell.weights, cell.recurrence, cell.bias
    update = f(x @ wz.T + hidden @ rz.T + b[0] + c[0])
    reset = f(x @ wr.T + hidden @ rr.T + b[1] + c[1])
    inner = (reset * hidden) @ rh.T + c[2] if cell.resets_before else reset * (hidden @ rh.T + c[2])
    return (1 - update) * g(x @ wh.T + inner + b[2]) + update * hidden, cells


def _lstm_step(cell, x, hidden, cells):
    (f, g, h), (pi, po, pf), (b, c) = cell.functions, cell.peepholes, cell.bias
    i, o, k, a = (
        x @ w.T + hidden @ r.T + bw + br for w, r, bw, br in zip(cell.weights, cell.recurrence, b, c, strict=True)
    )
    given = f(i + pi * cells)
    kept = 1 - given if cell.couples else f(k + pf * cells)
    cells = kept * cells + given * g(a)
    return f(o + po * cells) * h(cells, clips=False), cells


def recurrence(attributes, x, weights, recurrent, *more):
    """Return Y, Y_h and Y_c of a cell of any form, sequence by sequence."""
    bias, peepholes, hidden, cells = (*more, None, None)[:4]
    directions, rows, units = recurrent.shape
    gates, (steps, batch, _) = rows // units, x.shape
    lengths = attributes["lengths"] or (steps,) * batch
    step = {"GRU": _gru_step, "LSTM": _lstm_step, "RNN": _rnn_step}[attributes["cell"]]
    sequences, last = np.zeros((steps, directions, batch, units)), np.zeros((2, directions, batch, units))
    for d, sequence in np.ndindex(directions, batch):
        cell = SimpleNamespace(
            weights=np.split(weights[d], gates),
            recurrence=np.split(recurrent[d], gates),
            bias=np.zeros((2, gates, units)) if bias is None else bias[d].reshape(2, gates, units),
            peepholes=np.zeros((3, units)) if peepholes is None else peepholes[d].reshape(3, units),
            functions=[_clipping(function, attributes["clip"]) for function in attributes["functions"][d]],
            resets_before=attributes["resets_before"],
            couples=attributes["couples"],
        )
        state = [np.zeros(units) if value is None else value[d, sequence] for value in (hidden, cells)]
        backwards = d == 1 or attributes["direction"] == "reverse"
        for time in sorted(range(lengths[sequence]), reverse=backwards):
            state = step(cell, x[time, sequence], *state)
            sequences[time, d, sequence] = state[0]
        last[:, d, sequence] = state
    return sequences, last[0], last[1]


def _clipping(function, clip):
    compute = CELL_FUNCTIONS[function.name]
    return lambda x, clips=True: compute(np.clip(x, -clip, clip) if clips else x, function.alpha, function.beta)


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
    "FusedVolumeConv": fused_volume_conv,
    "GlobalAveragePool": lambda attributes, x: x.mean(axis=(2, 3), keepdims=True),
    "Interpolate": interpolate,
    "LRN": lrn,
    "MaxPool": max_pool,
    "Resize": lambda attributes, x: x.repeat(attributes["factors"][0], axis=2).repeat(attributes["factors"][1], axis=3),
    "Pool": pool,
    "Recurrence": recurrence,
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
    if node.op_type == "FusedConvTranspose":
        operands = (values[name] if name else None for name in node.inputs)
        return fused_conv_transpose(node.attributes, *operands, graph.shape(node.outputs[0]))
    if node.op_type == "Expand":
        return np.broadcast_to(values[node.inputs[0]], graph.shape(node.outputs[0]))
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
