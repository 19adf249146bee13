"""What the operators of an optimised graph mean, in numpy and float64."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def conv(x, weights, bias=None, residual=None, *, strides, pads, dilations, group, clamp):
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    weights = weights.astype(np.float64)
    kernel = [(size - 1) * dilation + 1 for size, dilation in zip(weights.shape[2:], dilations, strict=True)]
    windows = sliding_window_view(x, kernel, axis=(2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    inputs, outputs = x.shape[1] // group, weights.shape[0] // group
    parts = [
        np.einsum(
            "nchwij,ocij->nohw",
            windows[:, g * inputs : (g + 1) * inputs],
            weights[g * outputs : (g + 1) * outputs],
            optimize=True,
        )
        for g in range(group)
    ]
    result = np.concatenate(parts, axis=1)
    if bias is not None:
        result += bias.astype(np.float64)[None, :, None, None]
    if residual is not None:
        result += residual
    return np.clip(result, *clamp)


def pool(x, reduce, outside, *, kernel, strides, pads):
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=outside)
    windows = sliding_window_view(x, kernel, axis=(2, 3))[:, :, :: strides[0], :: strides[1]]
    return reduce(windows, axis=(4, 5))


def lrn(x, size, alpha, beta, bias):
    x = x.astype(np.float64)
    before = (size - 1) // 2
    padded = np.pad(x**2, ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
    return x * (bias + alpha / size * sliding_window_view(padded, size, axis=1).sum(-1)) ** -beta


def softmax(x, axis):
    e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, weights, recurrence, bias, state, *, backwards):
    """Return Y, Y_h and Y_c of every direction; the second one runs backwards."""
    directions, rows, units = recurrence.shape
    zeros = np.zeros((directions, x.shape[1], units))
    hidden, cells = (zeros if value is None else value.astype(np.float64) for value in state)
    bias = np.broadcast_to(bias, (directions, 2 * rows)).astype(np.float64)
    found = []
    for i in range(directions):
        h, c, outputs = hidden[i], cells[i], []
        reverse = backwards or i == 1
        for step in reversed(x) if reverse else x:
            sums = step.astype(np.float64) @ weights[i].T + h @ recurrence[i].T.astype(np.float64)
            given, shown, kept, candidate = np.split(sums + bias[i, :rows] + bias[i, rows:], 4, axis=1)
            c = _sigmoid(kept) * c + _sigmoid(given) * np.tanh(candidate)
            h = _sigmoid(shown) * np.tanh(c)
            outputs.append(h)
        found.append((outputs[::-1] if reverse else outputs, h, c))
    sequences, last, last_cells = zip(*found, strict=True)
    return np.stack(sequences, axis=1), np.array(last), np.array(last_cells)
