"""Static shapes: nodes, inputs and constants become a checked Graph in which every tensor has its shape and type."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.engine.ir.constants import Constants, Value, value_of
from powerlab.engine.ir.graph import (
    MAX_AXES,
    Array,
    Graph,
    InRoundsError,
    NeedsRunError,
    Node,
    Subgraph,
    TensorInfo,
    quoted,
)
from powerlab.engine.ops import CONTROL, NodeView, decides_by_values, operator
from powerlab.engine.ops.control import MAX_INLINED_NODES
from powerlab.engine.ops.counting import constant_value
from powerlab.engine.ops.sequences import Known, construct, resolved

MAX_ELEMENTS = 2**31 - 1
"""The largest tensor: more than any network here needs, and it keeps a hostile file from asking for all memory."""

_NAMING = ("Constant", "Identity")
"""Operators that exporters write by the hundred to give constants names: no node is left of them."""

MOST_IN_ROUNDS = 2**12
"""Nodes of loops after which a beginning ends: so many that the fixed work of a stage counts little."""

MOST_UNROLLED = 2**8
"""Nodes of bodies that stand side by side where rounds could be run one after the other: few may fold into less, but
each takes 30 to 40 µs to load, and rounds take about as long one after the other."""

IN_ROUNDS = "in_rounds"
"""Attribute of a Loop that is left to be run round after round; a file cannot bring it: attributes are checked."""

_MAX_TRACKED_ELEMENTS = 4096
"""Values up to this many elements are followed while shapes are inferred: shape arithmetic is small."""


def checked_shape(shape: Sequence[int], owner: object) -> tuple[int, ...]:
    """Return ``shape`` as plain ints.

    Raises:
        PowerlabError: an axis is negative, or there are too many.
        TooLargeError: the tensor is larger than ``MAX_ELEMENTS``.
    """
    sizes = tuple(map(int, shape))
    if len(sizes) <= MAX_AXES and min(sizes, default=1) > 0 and math.prod(sizes) <= MAX_ELEMENTS:
        return sizes
    if len(sizes) > MAX_AXES or min(sizes, default=0) < 0:
        raise PowerlabError(
            f"{owner} has the impossible shape {sizes[:8]}; export the model again or give another input shape."
        )
    if math.prod(filter(None, sizes)) > MAX_ELEMENTS:  # an axis of 0 hides no others
        raise TooLargeError(
            f"{owner} has the impossible shape {sizes[:8]}, of more than {MAX_ELEMENTS} numbers; use a smaller batch, "
            "smaller images or a smaller model."
        )
    return sizes


def sorted_nodes(nodes: Sequence[Node], available: Iterable[str]) -> tuple[Node, ...]:
    """Return the nodes so that each stands after those that make its inputs, otherwise in the order given.

    Raises:
        PowerlabError: a tensor is missing, made twice, or needs itself.
    """
    made = set(available)
    if _are_sorted(nodes, made):
        return tuple(nodes)
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.outputs):
            if name in makers or name in made:
                raise PowerlabError(f"{node} makes the tensor {quoted(name)}, which is already there.")
            makers[name] = index
    waiting = [{name for name in (*node.inputs, *node.captured()) if name and name not in made} for node in nodes]
    readers: dict[int, list[int]] = {}
    for index, names in enumerate(waiting):
        for name in names:
            if name not in makers:
                raise PowerlabError(f"{nodes[index]} reads the tensor {quoted(name)}, which nothing makes.")
            readers.setdefault(makers[name], []).append(index)
    order: list[int] = []
    ready = [index for index in reversed(range(len(nodes))) if not waiting[index]]
    while ready:
        index = ready.pop()
        order.append(index)
        for reader in readers.get(index, ()):
            if waiting[reader]:
                waiting[reader] -= set(nodes[index].outputs)
                if not waiting[reader]:
                    ready.append(reader)
    if len(order) < len(nodes):
        stuck = next(nodes[index] for index, names in enumerate(waiting) if names)
        raise PowerlabError(f"{stuck} needs, directly or through others, its own output, which no network can.")
    return tuple(nodes[index] for index in order)


def _are_sorted(nodes: Sequence[Node], available: Collection[str]) -> bool:
    """Tell whether each node stands after those that make its inputs, and makes what is not there yet."""
    made = {*available, ""}
    for node in nodes:
        if not made.issuperset(node.inputs) or not made.issuperset(node.captured()):
            return False
        if any(name and name in made for name in node.outputs):
            return False
        made.update(node.outputs)
    return True


def infer(
    name: str,
    nodes: Sequence[Node],
    inputs: Sequence[TensorInfo],
    output_names: Sequence[str],
    constants: Mapping[str, Value],
    *,
    unrolled: bool = True,
) -> Graph:
    """Return the graph with the shape and type of every tensor; If and Loop are resolved on the way.

    Args:
        name: of the network.
        nodes: in any order.
        inputs: with static shapes.
        output_names: its outputs.
        constants: name -> value.
        unrolled: whether all rounds of a Loop stand side by side, however many there are.

    Raises:
        InRoundsError: a Loop has too many rounds for that, where not all of them must.
        PowerlabError: an operator is unknown, or shapes, types or attributes do not fit together; it names the node.
    """
    found = _Inference(nodes, inputs, constants, output_names, unrolled=unrolled)
    left = deque(sorted_nodes(nodes, found.tensors))
    while left:
        left.extendleft(reversed(found.add(left.popleft())))
    outputs = []
    for wanted in output_names:
        if wanted in found.sequences:
            raise PowerlabError(
                f"the graph promises the output {quoted(wanted)}, a sequence of tensors; export the model with outputs "
                "that are tensors."
            )
        if wanted not in found.tensors:
            raise _unmade_output(nodes, wanted)
        outputs.append(found.tensors[wanted])
    return Graph(name, tuple(found.nodes), tuple(inputs), tuple(outputs), Constants(found.constants), found.tensors)


class Beginning(Struct, frozen=True):
    """As much of a network as can be told before a run, and what is left of it.

    Attributes:
        graph: of that much; its outputs are those of the network and what is read by the nodes left, but for ``known``.
        known: those whose values are told without a run, by name.
        left: the nodes to look at when ``graph`` has run; where a loop was begun, those of its next rounds. A Loop with
            the attribute ``IN_ROUNDS`` is to be run round after round.
        deciding: the inputs whose values the nodes left could not do without.
        apart: tensors that should be there before their readers are looked at, for they decide in each round of a loop.
        constants: those of the network and of the bodies of If and Loop, for the nodes left.
        reason: why the first of the nodes left is left; None where none is.
    """

    graph: Graph
    known: Mapping[str, Array]
    left: tuple[Node, ...]
    deciding: frozenset[str]
    apart: frozenset[str]
    constants: Mapping[str, Value]
    reason: NeedsRunError | None


def infer_beginning(
    name: str,
    nodes: Sequence[Node],
    inputs: Sequence[TensorInfo],
    *,
    wanted: Collection[str],
    constants: Mapping[str, Value],
    apart: Collection[str] = (),
    side_by_side: Collection[str] = (),
) -> Beginning:
    """Return as much of a network as can be told from shapes and constants.

    Args:
        name: of the network.
        nodes: in any order.
        inputs: with static shapes.
        wanted: its outputs.
        constants: name -> value; also of inputs whose values decide.
        apart: names of tensors that are read by later stages alone, unless they are inputs.
        side_by_side: names of results of Loops whose rounds stand side by side, however many there are.

    Raises:
        PowerlabError: an operator is unknown, or shapes, types or attributes do not fit together; it names the node.
    """
    found = _Inference(nodes, inputs, constants, wanted, unrolled=False, side_by_side=side_by_side)
    given = {info.name for info in inputs}
    left: list[Node] = []
    missing = set(apart) - given - constants.keys()
    deciding: set[str] = set()
    sources: set[str] = set()
    reason: NeedsRunError | None = None
    queue = deque(sorted_nodes(nodes, found.tensors))
    while queue:
        node = queue.popleft()
        enough = node.op_type == "Loop" and found.inlined > MOST_IN_ROUNDS
        if not enough and missing.isdisjoint((*node.inputs, *node.captured())):
            try:
                queue.extendleft(reversed(found.add(node)))
                continue
            except InRoundsError as error:
                reason = reason or error
                node = replace(node, attributes={**node.attributes, IN_ROUNDS: 1})
            except NeedsRunError as error:
                reason = reason or error
                if not decides_by_values(node):
                    deciding.update(given & {error.tensor})
                if not found.in_rounds.isdisjoint(node.inputs):
                    sources |= found.sources(error.tensor)
        left.append(node)
        missing.update(filter(None, node.outputs))
    read = {name for node in left for name in (*node.inputs, *node.captured())}
    begun = [construct(held, names) for held, names in found.sequences.items() if held in read]
    read.update(name for node in begun for name in node.inputs)
    left[:0] = begun
    made = [name for name in found.tensors if name not in found.constants and name not in given]
    handed_on = [name for name in made if name in read or name in wanted]
    known = {name: found.known[name] for name in handed_on if name in found.known}
    outputs = tuple(found.tensors[name] for name in handed_on if name not in known)
    graph = Graph(name, tuple(found.nodes), tuple(inputs), outputs, Constants(found.constants), found.tensors)
    deciding |= sources & given
    return Beginning(
        graph, known, tuple(left), frozenset(deciding), frozenset(sources - given), found.constants, reason
    )


class _Names:
    """The names of tensors that are taken."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def fresh(self, base_name: str) -> str:
        """Reserve and return ``base_name``, with a number if a tensor has that name."""
        name, number = base_name, 1
        while name in self.taken:
            name = f"{base_name}_{number}"
            number += 1
        self.taken.add(name)
        return name


class _Inference:
    """What is known of a graph's tensors while its nodes are looked at in order.

    Attributes:
        nodes: those looked at.
        constants: those of the model, and of the bodies of If and Loop.
        tensors: of constants, inputs, and what the nodes make.
        known: values that are told without a run, where they are small.
        sequences: the tensors that each sequence of tensors holds.
        inlined: nodes and rounds of the bodies of If and Loop so far.
        in_rounds: what is made in the rounds of loops.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        inputs: Sequence[TensorInfo],
        constants: Mapping[str, Value],
        taken: Iterable[str] = (),
        *,
        unrolled: bool = True,
        side_by_side: Collection[str] = (),
    ) -> None:
        self._unrolled, self._side_by_side = unrolled, side_by_side
        self.nodes: list[Node] = []
        self.constants: dict[str, Value] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self.known: dict[str, Array] = {}
        self.sequences: dict[str, tuple[str, ...]] = {}
        self._kept = frozenset(taken)
        self._names = _Names({*taken, *(output for node in nodes for output in node.outputs)})
        self.inlined = 0
        self.in_rounds: set[str] = set()
        self._sequences = Known(self.sequences, self._names.fresh)
        self._add_constants(constants)
        for info in inputs:
            checked_shape(info.shape, f"the input {quoted(info.name)}")
            self.tensors[info.name] = info
        self._names.taken |= self.tensors.keys()

    def _add_constants(self, constants: Mapping[str, Value]) -> None:
        for key, value in constants.items():
            self._add_constant(key, value)

    def _add_constant(self, name: str, value: Value) -> None:
        self.constants[name] = value
        self.tensors[name] = TensorInfo(name, value.shape, value.dtype)
        if value.size <= _MAX_TRACKED_ELEMENTS:
            self.known[name] = value_of(value)

    def add(self, node: Node) -> tuple[Node, ...]:
        """Look at a node whose inputs are known; return the nodes to look at next, where others stand in its place."""
        tensors, known = self.tensors, self.known
        if node.op_type in _NAMING and (value := self._named_constant(node)) is not None:
            self._add_constant(node.outputs[0], value)
            return ()
        for wanted in (*node.inputs, *node.captured()):
            if wanted not in tensors and wanted and wanted not in self.sequences:
                raise PowerlabError(f"{node} reads {quoted(wanted)}, an extra output that the engine does not compute.")
        view = NodeView(
            node,
            tuple([tensors.get(wanted) for wanted in node.inputs]),
            tuple([known.get(wanted) for wanted in node.inputs]),
        )
        if node.op_type in CONTROL:
            if node.op_type == "Loop" and not self._unrolled and self._runs_in_rounds(view):
                raise InRoundsError(f"{node} has many rounds.")
            return self._inline(view)
        if (held := resolved(view, self._sequences)) is not None:
            self._add_constants(held.constants)
            self.sequences.update(held.sequences)
            return held.nodes
        rule = operator(node)
        try:
            specs = rule.specs(view)
        except NeedsRunError as error:
            if error.tensor not in self.constants or error.tensor in known:
                raise
            known[error.tensor] = value_of(self.constants[error.tensor])  # large, but it decides
            return (node,)
        named = self._named(node, len(specs))
        infos = [
            TensorInfo(output, checked_shape(shape, node), dtype)
            for output, (shape, dtype) in zip(named, specs, strict=False)
        ]
        for info in infos:
            if info.name:
                tensors[info.name] = info
        elements = sum([info.elements for info in infos])
        if elements <= _MAX_TRACKED_ELEMENTS and (rule.evaluate is not None or elements == 0):
            values = rule.folded(view, infos)
            known.update(values)
            if values and self._no_longer_needed(infos):
                self.constants.update(values)
                return ()
        self.nodes.append(node if named == node.outputs else replace(node, outputs=named))
        return ()

    def _no_longer_needed(self, told: Sequence[TensorInfo]) -> bool:
        """Say whether no node is left where a node's outputs are told: of integers, which are no weights."""
        return all(info.dtype.kind != "f" and info.name not in self._kept for info in told)

    def sources(self, tensor: str | None) -> set[str]:
        """Return from what integers outside loops a tensor is computed; none where other tensors decide it, too."""
        makers = {output: node for node in self.nodes for output in node.outputs}
        found: set[str] = set()
        waiting, seen = [tensor], {tensor}
        while waiting:
            name = waiting.pop()
            info = self.tensors.get(name or "")
            if name is None or info is None or info.dtype.kind == "f" or info.elements > _MAX_TRACKED_ELEMENTS:
                return set()
            if name not in self.in_rounds:
                found.add(name)
                continue
            if name not in makers or operator(makers[name]).evaluate is None:
                return set()
            more = {read for read in makers[name].inputs if read and read not in self.known} - seen
            seen |= more
            waiting.extend(more)
        return found

    def _named_constant(self, node: Node) -> Value | None:
        """Return the constant to which a node only gives a name; None where it does not, or makes an output."""
        if len(node.outputs) != 1 or not node.outputs[0] or node.outputs[0] in self._kept:
            return None
        if node.op_type == "Identity":
            return self.constants.get(node.input(0))
        made = constant_value(NodeView(node, (), ()))
        checked_shape(made.shape, node)
        return made

    def _runs_in_rounds(self, view: NodeView) -> bool:
        """Say whether a Loop is to be run round after round, because all of them side by side would be many nodes."""
        from powerlab.engine.ir.rounds import one_round

        node, body = view.node, view.node.attributes.get("body")
        if "rounds" in node.attributes or not isinstance(body, Subgraph):
            return False
        if any(name in self._side_by_side for name in node.outputs if name):
            return False
        told = [not view.has(index) or view.is_known(index) for index in range(len(node.inputs))]
        if all(told):
            return False  # so are its results
        if all(told[:2]) and view.has(0) and self.inlined + len(body.nodes) * max(view.int_values(0)) <= MOST_UNROLLED:
            return False
        return IN_ROUNDS in node.attributes or one_round(node, self.tensors, self.constants) is not None

    def _inline(self, view: NodeView) -> tuple[Node, ...]:
        body = CONTROL[view.node.op_type](view, self._names.fresh)
        self.inlined += 1 + len(body.nodes)
        if view.node.op_type == "Loop":
            self.in_rounds.update(output for node in body.nodes for output in node.outputs)
        if self.inlined > MAX_INLINED_NODES:
            view.fail(f"makes more than {MAX_INLINED_NODES} nodes; export the model without control flow")
        self._add_constants(body.constants)
        return body.nodes

    def _named(self, node: Node, count: int) -> tuple[str, ...]:
        """Return at most ``count`` outputs of a node; the first gets a name of its own where only later have one.

        Raises:
            PowerlabError: none of them has a name.
        """
        if count == 1 == len(node.outputs) and node.outputs[0]:
            return node.outputs
        first, *more = node.outputs[:count]
        if not any((first, *more)):
            raise PowerlabError(f"{node} has no output that the engine computes; export the model again.")
        return (first or self._names.fresh(f"{max(more)}.first"), *more)


def _unmade_output(nodes: Sequence[Node], wanted: str) -> PowerlabError:
    maker = next((node for node in nodes if wanted in node.outputs), None)
    why = "which no node makes" if maker is None else f"an extra output of {maker} that the engine does not compute"
    return PowerlabError(f"the graph promises the output {quoted(wanted)}, {why}.")
