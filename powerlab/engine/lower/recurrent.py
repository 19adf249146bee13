"""LSTMs: what inputs and biases add to the gates is one matrix product over all steps; the rest runs step by step."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from powerlab.engine.choice import Choice
from powerlab.engine.graph import Node
from powerlab.engine.layout import Layout, divide_up
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.direct import Direct, emit_direct
from powerlab.engine.lower.partition import Work, partition
from powerlab.engine.operators.activation import NO_CLAMP, NO_SLOPE
from powerlab.engine.operators.recurrent import GATES
from powerlab.engine.pack import interleave_gates, pack_recurrence
from powerlab.engine.program import Tensor

_LANES = 128
"""Numbers of an input that count as one input block of the matrix product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lstm:
    """One direction of a FusedLstm node, and the vectors its hidden units are filled up to."""

    node: Node
    direction: int
    steps: int
    batch: int
    hidden: int
    width: int

    @property
    def filled(self) -> int:
        """Return the hidden units with those that fill up the last vector."""
        return divide_up(self.hidden, self.width) * self.width

    @property
    def backwards(self) -> bool:
        """Say whether time runs backwards."""
        return self.direction == 1 or self.node.attributes["direction"] == "reverse"

    def units(self, count: int, row: int, image: int) -> Layout:
        """Return ``count`` times one row of hidden units a sequence, as the kernel sees them."""
        blocks = self.filled // self.width
        return Layout(count, self.hidden, self.batch, 1, blocks, self.width, row, self.width, image)

    def own_units(self, count: int) -> Layout:
        """Return the same in memory that holds nothing else."""
        return self.units(count, self.filled, self.batch * self.filled)


def lower_lstm(builder: Builder, node: Node) -> None:
    """Lower a FusedLstm, one direction after the other."""
    steps, batch, _ = builder.graph.shape(node.inputs[0])
    directions, _, hidden = builder.graph.shape(node.inputs[2])
    sequence = builder.new_planar(node.outputs[0])
    last = [builder.new_planar(name) if name else None for name in node.outputs[1:]]
    for direction in range(directions):
        lstm = _Lstm(
            node=node, direction=direction, steps=steps, batch=batch, hidden=hidden, width=builder.tier.vector_width
        )
        _lower_direction(builder, lstm, sequence, last)


def _lower_direction(builder: Builder, lstm: _Lstm, sequence: Tensor, last: list[Tensor | None]) -> None:
    node = lstm.node
    own = lstm.units(lstm.steps, lstm.hidden, sequence.layout.image)
    result = sequence.seen_as(own, lstm.direction * lstm.batch * lstm.hidden)
    whole_vectors = lstm.hidden == lstm.filled
    out = result if whole_vectors else builder.in_arena(lstm.own_units(lstm.steps))
    cells = builder.in_arena(lstm.own_units(1))
    builder.emit(
        "lstm",
        node,
        out,
        _gates(builder, lstm),
        _initial(builder, lstm),
        scratch=cells,
        weights=pack_recurrence(builder.constant(node.inputs[2])[lstm.direction], lstm.width),
        rounds=lstm.steps,
        backwards=int(lstm.backwards),
    )
    if not whole_vectors:
        _copy(builder, f"{node.outputs[0]} to rows", result, out)
    end = out.layout.image * (0 if lstm.backwards else lstm.steps - 1)
    final = (out.seen_as(replace(out.layout, n=1), end), cells)
    for name, state, source in zip(node.outputs[1:], last, final, strict=False):
        if state is not None:
            row = lstm.units(1, lstm.hidden, state.layout.image)
            _copy(builder, f"{name} out", state.seen_as(row, lstm.direction * state.layout.image), source)


def _gates(builder: Builder, lstm: _Lstm) -> Tensor:
    """Emit what inputs and biases add to the gates: [step][sequence][unit block][gate][vector]."""
    node = lstm.node
    weights = builder.constant(node.inputs[1])[lstm.direction]
    inputs, outputs = weights.shape[1], GATES * lstm.filled
    x = builder.planar(node.inputs[0])
    rows = 1 if x.layout.image == lstm.batch * inputs else lstm.steps
    columns = lstm.steps * lstm.batch // rows
    lanes = min(_LANES, inputs)
    gates = builder.in_arena(_pixels(rows, columns, outputs, lstm.width, columns * outputs))
    bias = None
    if node.inputs[3]:
        of_inputs, of_states = builder.constant(node.inputs[3])[lstm.direction].reshape(2, -1, 1)
        bias = interleave_gates(of_inputs + of_states, lstm.width)
    conv = Direct(
        x=x.seen_as(_pixels(rows, columns, inputs, lanes, x.layout.image)),
        out=gates,
        residual=None,
        weights=interleave_gates(weights, lstm.width).reshape(outputs, inputs, 1, 1),
        bias=bias,
        groups=1,
        lanes=lanes,
        fields={
            **dict.fromkeys(("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w"), 1),
            **dict(zip(("low", "high"), NO_CLAMP, strict=True)),
            "slope": NO_SLOPE,
        },
    )
    work = Work(
        groups=1,
        in_blocks=divide_up(inputs, lanes),
        lanes=lanes,
        taps=1,
        out_blocks=gates.layout.blocks,
        rows=rows,
        columns=columns,
        x_bytes=4 * inputs * rows * columns,
    )
    cut = partition(work, builder.tier, builder.threads, builder.machine.caches)
    emit_direct(builder, node, conv, Choice(algorithm="direct", **asdict(cut)))
    image = lstm.batch * outputs
    blocks = outputs // lstm.width
    return gates.seen_as(Layout(lstm.steps, outputs, lstm.batch, 1, blocks, lstm.width, outputs, lstm.width, image))


def _pixels(rows: int, columns: int, channels: int, lanes: int, row: int) -> Layout:
    """Return [step][sequence][channel] as one image for a 1 x 1 convolution, in one row where nothing lies between."""
    return Layout(1, channels, rows, columns, divide_up(channels, lanes), channels, row, lanes, rows * row)


def _initial(builder: Builder, lstm: _Lstm) -> Tensor | None:
    """Return the initial hidden state and, behind it, the cells; None where both are zero."""
    names = lstm.node.inputs[4:]
    if not any(names):
        return None
    both = builder.in_arena(lstm.own_units(2))
    for index, name in enumerate(names):
        state = builder.planar(name)
        row = state.seen_as(lstm.units(1, lstm.hidden, state.layout.image), lstm.direction * state.layout.image)
        half = replace(both.layout, n=1)
        _copy(builder, f"{name} to state", both.seen_as(half, index * both.layout.image), row)
    return both


def _copy(builder: Builder, label: str, out: Tensor, x: Tensor) -> None:
    """Copy hidden units, a row a sequence, without what fills up the last vector."""
    layouts = (
        Layout(one.n, 1, one.h, one.c, 1, 1, one.row, one.h * one.row, one.image) for one in (out.layout, x.layout)
    )
    to, source = (tensor.seen_as(layout) for tensor, layout in zip((out, x), layouts, strict=True))
    builder.emit("copy", label, to, source)
