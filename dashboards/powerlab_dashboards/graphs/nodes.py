"""The nodes of a network with what each costs: time of a layer profile, else multiply-adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.domain.layers import Layer, LayerProfile
from powerlab.networks.outline import OutlineNode
from powerlab_dashboards.format import significant

SHADES = 6
"""Steps of the colour scale."""
_SHORT = {"BatchNormalization": "BatchNorm", "LayerNormalization": "LayerNorm"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of the picture.

    Attributes:
        name: of its first operator's node.
        operators: what it does, in order.
        shape: of its result, without the batch.
        inputs: the places of the nodes whose results it reads.
        cost: ms of an inference, or multiply-adds of an image; None where the profile does not know the node.
        share: its part of the whole cost, from 0 to 1.
    """

    name: str
    operators: str
    shape: str
    inputs: tuple[int, ...]
    cost: float | None
    share: float


def of_outline(outline: Sequence[OutlineNode], profile: LayerProfile | None) -> list[GraphNode]:
    """Return the nodes of a network that is known, with the time of a profile's layers where there is one."""
    costs: list[float | None] = [float(node.macs) for node in outline]
    if profile is not None:
        costs = _times(outline, profile.layers)
    whole = sum(cost or 0.0 for cost in costs)
    return [
        GraphNode(
            name=node.name,
            operators=_words(node.operators),
            shape="×".join(map(str, node.shape[1:])),
            inputs=node.inputs,
            cost=cost,
            share=0.0 if cost is None or whole == 0 else cost / whole,
        )
        for node, cost in zip(outline, costs, strict=True)
    ]


def of_profile(profile: LayerProfile) -> list[GraphNode]:
    """Return the layers of a profile one after the other, which is all that it says of how they are joined."""
    whole = sum(layer.time.value for layer in profile.layers)
    return [
        GraphNode(
            name=layer.name,
            operators=layer.operator or layer.kernel,
            shape="×".join(map(str, layer.shape[1:])),
            inputs=(place - 1,) if place else (),
            cost=layer.time.value,
            share=layer.time.value / whole if whole else 0.0,
        )
        for place, layer in enumerate(profile.layers)
    ]


def _times(outline: Sequence[OutlineNode], layers: Sequence[Layer]) -> list[float | None]:
    """Return each node's time: a layer belongs to the costliest node that it computes; None where no layer does."""
    place = {member: index for index, node in enumerate(outline) for member in node.members}
    found: list[float | None] = [None] * len(outline)
    for layer in layers:
        own = sorted({place[name] for name in (*layer.nodes, layer.name) if name in place})
        if own:
            main = max(own, key=lambda index: outline[index].macs)
            found[main] = (found[main] or 0.0) + layer.time.value
            for index in own:
                found[index] = found[index] or 0.0
    return found


def _words(operators: Sequence[str]) -> str:
    return " + ".join(_SHORT.get(one, one) for one in operators)


def shade(node: GraphNode, most: float) -> int:
    """Return the step of the colour scale for a node, from 0 for nothing to ``SHADES - 1`` for the costliest."""
    if node.share == 0 or most == 0:
        return 0
    return 1 + min(SHADES - 2, int((SHADES - 1) * node.share / most))


def cost_words(node: GraphNode, *, timed: bool) -> str:
    """Return ``1.23 ms`` or ``118 M``; empty where nothing is known, and for nothing."""
    if not node.cost:
        return ""
    return f"{significant(node.cost)} ms" if timed else f"{significant(node.cost / 1e6)} M"
