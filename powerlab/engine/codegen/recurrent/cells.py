"""Recurrent cells: what inputs and biases add to the gates is one matrix product over all steps; the rest is by steps.

The usual LSTM is lowered here; cells of other forms, in ``recurrence.py``, take from here what they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.codegen.narrow.formats import RECURRENT_FORMATS, Format
from powerlab.engine.codegen.pack import interleave_gates, pack_recurrence
from powerlab.engine.ir.constants import Value, derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.activation import NO_CLAMP, NO_SLOPE
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Layout, divide_up
from powerlab.engine.program.program import Floats, Tensor

_LANES = 128
"""Numbers of an input that count as one input block of the matrix product."""


class Direction(Struct, frozen=True, kw_only=True):
    """One direction of a recurrent node, and the vectors its hidden units are filled up to."""

    node: Node
    direction: int
    steps: int
    batch: int
    hidden: int
    gates: int
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
    for cell in directions_of(builder, node):
        result, out = rows_of_units(builder, cell)
        cells = builder.in_arena(cell.own_units(1))
        form = RECURRENT_FORMATS.get(builder.tier.precision)
        builder.emit(
            "lstm" if form is None else f"lstm_{form.name}",
            node,
            out,
            emit_gates(builder, cell, _bias(builder, cell)),
            initial_state(builder, cell, node.inputs[4:]),
            scratch=cells,
            weights=packed_states(builder, cell) if form is None else _narrowed(builder, cell, form),
            rounds=cell.steps,
            backwards=int(cell.backwards),
        )
        if out is not result:
            copy_units(builder, f"{node.outputs[0]} to rows", result, out)
        end = out.layout.image * (0 if cell.backwards else cell.steps - 1)
        put_last_states(builder, cell, (out.seen_as(replace(out.layout, n=1), end), cells))


def packed_states(builder: Builder, cell: Direction) -> Value:
    """Return what hidden units add to the gates, packed for the kernels of cells."""
    return derived(
        builder.kept(cell.node.inputs[2]),
        (cell.gates * cell.filled * cell.hidden,),
        partial(_of_direction, pack_recurrence, cell.direction, cell.width, cell.gates),
    )


def _narrowed(builder: Builder, cell: Direction, form: Format) -> Value:
    """Return the same in fewer bits; the gates of a block of units are a unit's vectors."""
    weights = _interleaved(builder, cell, cell.node.inputs[2], cell.hidden)
    return form.packed(weights, cell.width, cell.gates)


def _interleaved(builder: Builder, cell: Direction, name: str, columns: int) -> Value:
    """Return the weights of a direction with a hidden unit's gates side by side."""
    return derived(
        builder.kept(name),
        (cell.gates * cell.filled, columns),
        partial(_of_direction, interleave_gates, cell.direction, cell.width, cell.gates),
    )


def _of_direction(
    pack: Callable[[Floats, int, int], Floats], direction: int, width: int, gates: int, weights: Floats
) -> Floats:
    return pack(weights[direction], width, gates)


def directions_of(builder: Builder, node: Node) -> list[Direction]:
    """Return the directions of a recurrent node."""
    steps, batch, _ = builder.graph.shape(node.inputs[0])
    directions, rows, hidden = builder.graph.shape(node.inputs[2])
    return [
        Direction(
            node=node,
            direction=direction,
            steps=steps,
            batch=batch,
            hidden=hidden,
            gates=rows // hidden,
            width=builder.tier.vector_width,
        )
        for direction in range(directions)
    ]


def rows_of_units(builder: Builder, cell: Direction) -> tuple[Tensor, Tensor]:
    """Return where a direction's hidden units belong, and where its kernel puts them: there, if they fill vectors."""
    sequence = builder.new_planar(cell.node.outputs[0])
    own = cell.units(cell.steps, cell.hidden, sequence.layout.image)
    result = sequence.seen_as(own, cell.direction * cell.batch * cell.hidden)
    return result, result if cell.hidden == cell.filled else builder.in_arena(cell.own_units(cell.steps))


def put_last_states(builder: Builder, cell: Direction, states: Sequence[Tensor]) -> None:
    """Copy the states after the last step to the node's further outputs, as far as they have names."""
    for name, source in zip(cell.node.outputs[1:], states, strict=False):
        if name:
            state = builder.new_planar(name)
            row = cell.units(1, cell.hidden, state.layout.image)
            copy_units(builder, f"{name} out", state.seen_as(row, cell.direction * state.layout.image), source)


def _bias(builder: Builder, cell: Direction) -> Floats | None:
    """Return what is added to the gates of an LSTM, shape (4 * hidden, 1)."""
    name = cell.node.inputs[3]
    if not name:
        return None
    of_inputs, of_states = builder.constant(name)[cell.direction].reshape(2, -1, 1)
    both: Floats = of_inputs + of_states
    return both


def emit_gates(builder: Builder, cell: Direction, bias: Floats | None) -> Tensor:
    """Emit what inputs and biases add to the gates: [step][sequence][unit block][gate][vector].

    Args:
        builder: gets the step.
        cell: the direction of a recurrent node.
        bias: shape (gates * hidden, 1), gate after gate.
    """
    node = cell.node
    inputs, outputs = builder.graph.shape(node.inputs[1])[2], cell.gates * cell.filled
    weights = _interleaved(builder, cell, node.inputs[1], inputs)
    x = builder.planar(node.inputs[0])
    rows = 1 if x.layout.image == cell.batch * inputs else cell.steps
    columns = cell.steps * cell.batch // rows
    lanes = min(_LANES, inputs)
    gates = builder.in_arena(_pixels(rows, columns, outputs, cell.width, columns * outputs))
    kernels = (outputs, inputs, 1, 1)
    conv = Direct(
        x=x.seen_as(_pixels(rows, columns, inputs, lanes, x.layout.image)),
        out=gates,
        residual=None,
        weights=derived(weights, kernels, partial(np.reshape, shape=kernels)),
        bias=None if bias is None else interleave_gates(bias, cell.width, cell.gates),
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
    image = cell.batch * outputs
    blocks = outputs // cell.width
    return gates.seen_as(Layout(cell.steps, outputs, cell.batch, 1, blocks, cell.width, outputs, cell.width, image))


def _pixels(rows: int, columns: int, channels: int, lanes: int, row: int) -> Layout:
    """Return [step][sequence][channel] as one image for a 1 x 1 convolution, in one row where nothing lies between."""
    return Layout(1, channels, rows, columns, divide_up(channels, lanes), channels, row, lanes, rows * row)


def initial_state(builder: Builder, cell: Direction, names: Sequence[str]) -> Tensor | None:
    """Return the initial hidden state and, behind it, the cells, of these names; None where all are zero."""
    if not any(names):
        return None
    both = builder.in_arena(cell.own_units(len(names)))
    for index, name in enumerate(names):
        state = builder.planar(name)
        row = state.seen_as(cell.units(1, cell.hidden, state.layout.image), cell.direction * state.layout.image)
        half = replace(both.layout, n=1)
        copy_units(builder, f"{name} to state", both.seen_as(half, index * both.layout.image), row)
    return both


def copy_units(builder: Builder, label: str, out: Tensor, x: Tensor) -> None:
    """Copy hidden units, a row a sequence, without what fills up the last vector."""
    layouts = (
        Layout(one.n, 1, one.h, one.c, 1, 1, one.row, one.h * one.row, one.image) for one in (out.layout, x.layout)
    )
    to, source = (tensor.seen_as(layout) for tensor, layout in zip((out, x), layouts, strict=True))
    builder.emit("copy", label, to, source)
