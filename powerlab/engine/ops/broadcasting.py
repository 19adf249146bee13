"""How shapes combine element by element: numpy's broadcasting (ONNX's is the same)."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ops.view import NodeView


def broadcast_shape(view: NodeView) -> tuple[int, ...]:
    """Return the shape to which all inputs broadcast."""
    return broadcast_shapes(view, [view.shape(index) for index in range(len(view.infos))])


def broadcast_shapes(view: NodeView, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which these shapes broadcast."""
    if len(set(shapes)) == 1:
        return shapes[0]
    rank = max(map(len, shapes), default=0)
    sizes = []
    for axis in range(rank):
        found = {shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0} - {1}
        if len(found) > 1:
            view.fail(f"combines the shapes {' and '.join(map(str, shapes[:8]))}, which do not fit")
        sizes.append(found.pop() if found else 1)
    return tuple(sizes)
