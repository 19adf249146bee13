"""The forward pass of a step: the network as it was loaded, with what layers do otherwise while they train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, Node, TensorInfo, fresh_name
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.ops.casting import cast_dtype, narrow_target, to_half
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.views import drop_ratio
from powerlab.engine.passes.expand.attention import expand_attention
from powerlab.engine.passes.expand.einsum import expand_einsum
from powerlab.engine.passes.expand.rotary import expand_rotary
from powerlab.engine.passes.fold.constants import fold_constants
from powerlab.engine.passes.legalize.data_movement import move_blocks
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.training.parameters import parameters_of
from powerlab.engine.training.recurrences import unroll_recurrences


class Mask(Struct, frozen=True, kw_only=True):
    """An input that says which elements a Dropout keeps: 0, or 1 / (1 - ratio).

    Attributes:
        input: its name.
        ratio: the part that is dropped.
    """

    input: str
    ratio: float


class Forward(Struct, frozen=True, kw_only=True):
    """A forward pass.

    Attributes:
        graph: of it; running statistics are constants, as the weights are.
        parameters: names of the constants that are trained.
        statistics: a running mean or variance -> the tensor that it becomes.
        masks: what is drawn before each step.
    """

    graph: Graph
    parameters: Sequence[str]
    statistics: Mapping[str, str]
    masks: Sequence[Mask]


class _Network:
    """A network whose layers are made to train one by one."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tensors: dict[str, TensorInfo] = {}
        self._inputs: list[TensorInfo] = []
        self._statistics: dict[str, str] = {}
        self._masks: list[Mask] = []

    def forward(self, *, whole_cells: bool) -> Forward:
        """Return the network as it trains."""
        rules = {"BatchNormalization": self._batch_norm, "Dropout": self._dropout}
        nodes = [rules[node.op_type](node) if node.op_type in rules else node for node in self._graph.nodes]
        graph = self._graph.rewritten(nodes, tensors=self._tensors.values())
        graph = replace(graph, inputs=(*graph.inputs, *self._inputs))
        return Forward(
            graph=unroll_recurrences(graph, whole_cells=whole_cells),
            parameters=parameters_of(graph),
            statistics=self._statistics,
            masks=tuple(self._masks),
        )

    def _batch_norm(self, node: Node) -> Node:
        """Take the batch's own statistics, and move the running ones towards them."""
        moved = []
        for name in node.inputs[3:5]:
            if name not in self._graph.kept_constants or name in self._statistics:
                raise PowerlabError(f"{node} cannot be trained: its running statistics are no constants of its own.")
            moved.append(self._tensor(f"{name}.after", self._graph.shape(name)))
            self._statistics[name] = moved[-1]
        view = NodeView.of(self._graph, node)
        own = (self._tensor(f"{node.outputs[0]}.{what}", view.shape(0)[1:2]) for what in ("mean", "inverse"))
        attributes = {
            "epsilon": view.number("epsilon", 1e-5),
            "momentum": view.number("momentum", 0.9),
            "clamp": NO_CLAMP,
        }
        return Node("BatchNorm", node.name, node.inputs, (node.outputs[0], *moved, *own), attributes)

    def _dropout(self, node: Node) -> Node:
        """Multiply by a mask."""
        view = NodeView.of(self._graph, node)
        ratio = drop_ratio(view) if view.has(1) else view.number("ratio", 0.5)  # an attribute until opset 12
        if not 0 <= ratio < 1:
            view.fail(f"drops {ratio} of its input, which must be 0 or more and less than 1")
        if any(node.outputs[1:]):
            view.fail("cannot be trained: its second output says what it kept")
        if ratio == 0:
            return Node("Identity", node.name, node.inputs[:1], node.outputs[:1])
        mask = self._tensor(f"{node.outputs[0]}.mask", view.shape(0))
        self._inputs.append(self._tensors[mask])
        self._masks.append(Mask(input=mask, ratio=ratio))
        return Node("Mul", node.name, (node.inputs[0], mask), node.outputs[:1])

    def _tensor(self, base_name: str, shape: tuple[int, ...]) -> str:
        name = fresh_name(self._graph, base_name, self._tensors)
        self._tensors[name] = TensorInfo(name, shape)
        return name


def composed(graph: Graph) -> Graph:
    """Return a network, composed of operators that have gradients as far as that can be.

    Sizes, places and the like that only constants decide are computed now; floats that they make may be trained.
    """
    graph = fold_constants(graph, floats=False)
    for rewrite in (expand_einsum, expand_attention, expand_rotary, drop_dead):
        graph = rewrite(graph)
    return rewrite_nodes(graph, _SIMPLER)


def _cast(view: NodeView, _rewriter: Rewriter) -> Sequence[Node] | None:
    """Leave out casts to the type that there is, which exporters write for half precision that was not asked for."""
    if cast_dtype(view) != view.dtype(0) or to_half(view) or narrow_target(view) is not None:
        return None
    return [Node("Identity", view.node.name, view.node.inputs[:1], view.node.outputs)]


_SIMPLER = {"Cast": _cast, "DepthToSpace": move_blocks, "SpaceToDepth": move_blocks}


def forward_pass(graph: Graph, *, whole_cells: bool = False) -> Forward:
    """Return the forward pass of a network; ``whole_cells`` as in :func:`unroll_recurrences`.

    Raises:
        PowerlabError: a layer cannot be trained; names it.
    """
    return _Network(composed(graph)).forward(whole_cells=whole_cells)
