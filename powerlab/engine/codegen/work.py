"""What each step of a plan has to do: its nodes, its floating-point operations, and the bytes it must move."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.attention import Attention, find_attentions
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.convolutions.phases import phases
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ir.statistics import macs
from powerlab.engine.ops.quantization import QUANTIZED
from powerlab.engine.ops.windows import planes_seen
from powerlab.engine.program.operand import Operand
from powerlab.engine.program.program import Floats, Step, Tensor
from powerlab.engine.program.storage import FLOAT_BYTES

_CONVOLUTIONS = ("Conv", "FusedConv")
_POOLED = "conv_pool_u8"
_ATTENTIONS = ("attention_f32", "attention_bf16")
_VIEWS = ("Concat", "Expand", "ImagePad", "Pad", "QuantPad", "QuantView", "Reshape", "Slice", "Tile", "Transpose")
"""What is left of these are moves, as many as it takes."""


_SMALL_BYTES, _SMALL_FLOPS = 2**9, 2**11
"""A lane: what takes half a microsecond or less, as a barrier does."""


class StepWork(Struct, frozen=True, kw_only=True, gc=False):
    """One step of a plan.

    Attributes:
        label: the node it computes, or what it does where it computes none (``x interleaved``).
        operator: that node's operator in the optimised graph; empty where it computes none.
        output: the tensor it makes; empty where it computes no node.
        shape: of its result, NCHW.
        flops: floating-point operations: two for a multiply-add of a convolution or matrix product, however the kernel
            gets to its result (Winograd's algorithms need fewer); one for a comparison or an addition elsewhere.
        bytes_moved: operands, weights and result, each once, in float32 or bytes: no step can move less to and from
            memory that holds none of it yet.
    """

    label: str
    operator: str
    output: str
    shape: tuple[int, ...]
    flops: int
    bytes_moved: int

    def is_small(self, lanes: int, weights: Floats | None) -> bool:
        """Say whether one thread is done about as soon as several are that meet at a barrier.

        Args:
            lanes: of a vector.
            weights: the step's own, of which each is read for two operations or more.
        """
        others = self.bytes_moved - (0 if weights is None else weights.nbytes)
        return others <= _SMALL_BYTES * lanes and self.flops <= _SMALL_FLOPS * lanes


def step_work(graph: Graph, steps: Sequence[Step]) -> tuple[StepWork, ...]:
    """Return what every step does, in their order.

    Args:
        graph: the optimised graph that was lowered.
        steps: those of its program.
    """
    works: defaultdict[str, deque[StepWork]] = defaultdict(deque)
    for node in graph.nodes:
        if node.op_type in _VIEWS:
            continue
        parts = _PARTS.get(node.op_type, _whole)(graph, node)
        works[node.name or node.outputs[0]].extend(parts)
    for label in {step.label for step in steps if step.family.startswith(_POOLED)}:
        works[label] = deque([_with_pool(graph, works[label].pop())])
    together = {step.label for step in steps if step.family in _ATTENTIONS}
    for attention in find_attentions(graph, lambda _: True) if together else ():
        whole = _of_attention(graph, attention)
        if whole.label in together:
            works[whole.label] = deque([whole])
    return tuple(works[step.label].popleft() if works[step.label] else _move(step) for step in steps)


def _whole(graph: Graph, node: Node) -> tuple[StepWork, ...]:
    return (node_work(graph, node),)


def node_work(graph: Graph, node: Node) -> StepWork:
    """Return the work of a node that one step computes."""
    output = node.outputs[0]
    return StepWork(
        label=node.name or output,
        operator=node.op_type,
        output=output,
        shape=graph.shape(output),
        flops=_flops(graph, node),
        bytes_moved=_bytes_moved(graph, node),
    )


def _bytes_moved(graph: Graph, node: Node) -> int:
    if node.op_type in QUANTIZED:
        infos = (graph.tensors[name] for name in {*node.inputs, *node.outputs} if name)
        return sum(info.elements * info.dtype.itemsize for info in infos)
    return FLOAT_BYTES * (_elements_read(graph, node) + graph.tensors[node.outputs[0]].elements)


def _with_pool(graph: Graph, conv: StepWork) -> StepWork:
    """Return the work of a convolution and of the pool that ends it: what lies between goes to no memory."""
    (pool,) = graph.consumers()[conv.output]
    between, made = graph.tensors[conv.output], pool.outputs[0]
    return replace(
        conv,
        output=made,
        shape=graph.shape(made),
        flops=conv.flops + _flops(graph, pool),
        bytes_moved=conv.bytes_moved + _bytes_moved(graph, pool) - 2 * between.elements * between.dtype.itemsize,
    )


def _of_attention(graph: Graph, attention: Attention) -> StepWork:
    """Return the work of an attention, whose scores go to no memory."""
    first, second = attention.products
    read = {*first.inputs, second.inputs[1], *(mask.name for mask in attention.masks)}
    elements = sum(graph.tensors[name].elements for name in (*read, second.outputs[0]))
    flops = sum(_flops(graph, node) for node in (*attention.before, second) if node.op_type not in _VIEWS)
    return replace(node_work(graph, second), flops=flops, bytes_moved=FLOAT_BYTES * elements)


def _of_recurrence(graph: Graph, node: Node) -> tuple[StepWork, ...]:
    """Return the work of a recurrent node's steps, two a direction: inputs times weights, then all steps of time."""
    output = node.outputs[0]
    steps, batch, inputs = graph.shape(node.inputs[0])
    directions, rows, hidden = graph.shape(node.inputs[2])
    gates = steps * batch * rows
    parts = (
        (inputs, steps * batch * inputs + rows * inputs + gates, (steps, batch, rows)),
        (hidden, gates + rows * hidden + steps * batch * hidden, (steps, batch, hidden)),
    )
    return directions * tuple(
        StepWork(
            label=node.name or output,
            operator=node.op_type,
            output=output,
            shape=shape,
            flops=2 * gates * summed,
            bytes_moved=FLOAT_BYTES * moved,
        )
        for summed, moved, shape in parts
    )


def _of_phases(graph: Graph, node: Node) -> tuple[StepWork, ...]:
    """Return the work of a transposed convolution, a phase a step; each reads the image."""
    output = node.outputs[0]
    images, outputs, *_ = graph.shape(output)
    weights, image = graph.tensors[node.inputs[1]], graph.tensors[node.inputs[0]]
    found = []
    for rows, columns in phases(graph, node):
        taps = len(rows.taps) * len(columns.taps)
        made = images * outputs * rows.count * columns.count
        own = weights.elements // math.prod(weights.shape[2:]) * taps
        found.append(
            StepWork(
                label=node.name or output,
                operator=node.op_type,
                output=output,
                shape=(images, outputs, rows.count, columns.count),
                flops=2 * image.elements // graph.shape(node.inputs[0])[1] * own,
                bytes_moved=FLOAT_BYTES * (image.elements + own + made),
            )
        )
    return tuple(found)


def _of_images(graph: Graph, node: Node) -> tuple[StepWork, ...]:
    """Return the work of a convolution over volumes, an image a step; each reads all weights."""
    whole, images = node_work(graph, node), graph.shape(node.outputs[0])[0]
    weights = FLOAT_BYTES * graph.tensors[node.inputs[1]].elements
    one = replace(
        whole,
        shape=(1, *whole.shape[1:]),
        flops=whole.flops // images,
        bytes_moved=(whole.bytes_moved - weights) // images + weights,
    )
    return (one,) * images


def _of_planes(graph: Graph, node: Node) -> tuple[StepWork, ...]:
    """Return the work of a quantized convolution over volumes: a step for each stretch of planes of each volume."""
    whole, weights = node_work(graph, node), graph.tensors[node.inputs[1]].elements
    volumes, _, planes = graph.shape(node.inputs[0])[:3]
    made, taps = graph.shape(node.outputs[0])[2], graph.shape(node.inputs[1])[2]
    parts = planes_seen(planes, made, taps, integers(node, "strides")[0], integers(node, "pads")[0])
    shares = [part.count / (volumes * made) for part in parts]
    return tuple(
        replace(
            whole,
            shape=(1, whole.shape[1], part.count, *whole.shape[3:]),
            flops=int(whole.flops * share * len(part.taps) / taps),
            bytes_moved=int((whole.bytes_moved - weights) * share + weights * len(part.taps) / taps),
        )
        for part, share in zip(parts, shares, strict=True)
        for _ in range(volumes)
    )


_PARTS = {
    "FusedConvTranspose": _of_phases,
    "FusedVolumeConv": _of_images,
    "FusedLstm": _of_recurrence,
    "QuantVolumeConv": _of_planes,
    "Recurrence": _of_recurrence,
}
"""Operators that are several steps → the work of each of them, in their order."""


def _flops(graph: Graph, node: Node) -> int:
    if multiplied := macs(graph, node):
        return 2 * multiplied
    if node.op_type == "GlobalAveragePool" or node.attributes.get("kind") == "global_average":
        return graph.tensors[node.inputs[0]].elements
    each = 1
    match node.op_type:
        case "MaxPool" | "AveragePool" | "Pool" | "QuantPool":
            each = math.prod(integers(node, "kernel"))
        case "ScaleShift":
            each = 2
        case "LRN":
            each = 2 * int(number(node, "size")) + 2
        case "Softmax":
            each = 4  # the maximum, the difference, the sum, the quotient
    return each * graph.tensors[node.outputs[0]].elements


def _elements_read(graph: Graph, node: Node) -> int:
    """Return how many numbers a node reads; a convolution may step over some of its input."""
    read = sum(graph.tensors[name].elements for name in set(node.inputs) if name)
    if node.op_type not in _CONVOLUTIONS:
        return read
    images, channels, *size = graph.shape(node.inputs[0])
    reached = [
        min(length, out * kernel * dilation)
        for length, out, kernel, dilation in zip(
            size,
            graph.shape(node.outputs[0])[2:],
            graph.shape(node.inputs[1])[2:],
            integers(node, "dilations"),
            strict=True,
        )
    ]
    return read - images * channels * (math.prod(size) - math.prod(reached))


def _move(step: Step) -> StepWork:
    """Return the work of a step that only moves numbers from one layout to another."""
    touched = [tensor for tensor in (step.out, step.x, *step.operands) if tensor is not None]
    return StepWork(
        label=step.label,
        operator="",
        output="",
        shape=_sizes(touched[0]),
        flops=0,
        bytes_moved=FLOAT_BYTES * sum(map(_floats, touched)),
    )


def _sizes(tensor: Tensor | Operand) -> tuple[int, ...]:
    if isinstance(tensor, Operand):
        return tensor.sizes
    layout = tensor.layout
    return layout.n, layout.c, layout.h, layout.w


def _floats(tensor: Tensor | Operand) -> int:
    return math.prod(_sizes(tensor)) * (tensor.element.floats if isinstance(tensor, Operand) else 1)


def nodes_behind(loaded: Graph, work: Sequence[StepWork]) -> tuple[tuple[str, ...], ...]:
    """Return which nodes of the model as it was read each step stands for, in the model's order.

    Passes put several nodes into one: a step stands for those between its result and the results of other steps. A
    step that computes no node stands for none.
    """
    producers, results = loaded.producers(), {step.output for step in work if step.output}
    place = {id(node): index for index, node in enumerate(loaded.nodes)}
    found: list[tuple[str, ...]] = []
    for step in work:
        behind: dict[int, Node] = {}
        waiting = [step.output]
        while waiting:
            name = waiting.pop()
            node = producers.get(name)
            if node is None or id(node) in behind or (name in results and name != step.output):
                continue
            behind[id(node)] = node
            waiting += node.inputs
        ordered = sorted(behind.values(), key=lambda node: place[id(node)])
        found.append(tuple(node.name or node.outputs[0] for node in ordered if node.op_type != "Constant"))
    return tuple(found)
