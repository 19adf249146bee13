"""LSTM, GRU and RNN of one direction, from a state of zeros, as functions of torch that have gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from powerlab.backends.torch_floats import gates_of_torch
from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Node

Tensor = Any
_UNUSUAL = ("activations", "clip", "input_forget", "layout")
"""Attributes that torch's layers have no place for."""


def recurrent_rules(torch: Any) -> Mapping[str, Callable[..., Any]]:
    """Return operator -> what computes it from the node and its inputs."""

    def start(node: Node, x: Tensor, recurrence: Tensor, bias: Tensor, more: Sequence[Tensor]) -> Tensor:
        """Return the state before the first step."""
        forward = node.attributes.get("direction", "forward") == "forward"
        if not forward or bias is None or any(one is not None for one in more) or has_any(node, _UNUSUAL):
            raise PowerlabError(f"{node} is not translated for training in torch yet; use another engine.")
        return x.new_zeros(1, x.shape[1], recurrence.shape[2])

    def lstm(node: Node, x: Tensor, weights: Tensor, recurrence: Tensor, bias: Tensor = None, *more: Tensor) -> Tensor:
        state = start(node, x, recurrence, bias, more)
        of_torch = [gates_of_torch(torch, part) for part in (weights[0], recurrence[0], *bias[0].chunk(2))]
        y, *last = torch.lstm(x, (state, state), of_torch, True, 1, 0.0, True, False, False)
        return y[:, None], *last

    def gru(node: Node, x: Tensor, weights: Tensor, recurrence: Tensor, bias: Tensor = None, *more: Tensor) -> Tensor:
        state, parts = start(node, x, recurrence, bias, more), (weights[0], recurrence[0], *bias[0].chunk(2))
        if node.attributes.get("linear_before_reset", 0):
            swapped = [torch.cat((reset, update, new)) for update, reset, new in (part.chunk(3) for part in parts)]
            y, last = torch.gru(x, state, swapped, True, 1, 0.0, True, False, False)
            return y[:, None], last
        of_input, of_state, input_bias, state_bias = parts
        hidden, made, units = state[0], [], state.shape[2]
        for given in torch.nn.functional.linear(x, of_input, input_bias):
            gates = given[:, : 2 * units] + hidden @ of_state[: 2 * units].T + state_bias[: 2 * units]
            update, reset = gates.sigmoid().chunk(2, 1)
            moved = (reset * hidden) @ of_state[2 * units :].T + state_bias[2 * units :]
            hidden = (1 - update) * (given[:, 2 * units :] + moved).tanh() + update * hidden
            made.append(hidden)
        return torch.stack(made)[:, None], hidden[None]

    def rnn(node: Node, x: Tensor, weights: Tensor, recurrence: Tensor, bias: Tensor = None, *more: Tensor) -> Tensor:
        state, parts = start(node, x, recurrence, bias, more), [weights[0], recurrence[0], *bias[0].chunk(2)]
        y, last = torch.rnn_tanh(x, state, parts, True, 1, 0.0, True, False, False)
        return y[:, None], last

    return {"GRU": gru, "LSTM": lstm, "RNN": rnn}


def has_any(node: Node, names: Sequence[str]) -> bool:
    """Say whether a node has one of these attributes, and not empty or 0."""
    return any(node.attributes.get(name) for name in names)
