"""Where the nodes of a network stand: a row for each step on the longest way to them, branches beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH_PX, HEIGHT_PX = 300, 40
_ROW_PX, _COLUMN_PX = 58, 336
_EDGE_PX = 12
"""Room at the margins, and how far an edge swings out around the nodes that it passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A placed network.

    Attributes:
        places: the top left corner of every node, in px.
        edges: the paths of all edges, as SVG writes them.
        width_px: of the whole picture.
        height_px: of the whole picture.
    """

    places: tuple[tuple[int, int], ...]
    edges: str
    width_px: int
    height_px: int


def picture(inputs: Sequence[Sequence[int]]) -> Picture:
    """Place nodes.

    Args:
        inputs: of each node, the places of the nodes before it whose results it reads.
    """
    cells = _cells(inputs)
    places = tuple((_EDGE_PX + column * _COLUMN_PX, _EDGE_PX + row * _ROW_PX) for row, column in cells)
    edges = "".join(
        _edge(places[source], places[target], passes=cells[target][0] - cells[source][0] > 1)
        for target, sources in enumerate(inputs)
        for source in sources
    )
    return Picture(
        places=places,
        edges=edges,
        width_px=max((x for x, _ in places), default=0) + WIDTH_PX + 4 * _EDGE_PX,
        height_px=max((y for _, y in places), default=0) + HEIGHT_PX + _EDGE_PX,
    )


def _cells(inputs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the row and column of every node: a branch goes on in the column of what it reads, if that is free."""
    cells: list[tuple[int, int]] = []
    taken: set[tuple[int, int]] = set()
    for sources in inputs:
        row = max((cells[source][0] + 1 for source in sources), default=0)
        column = min((cells[source][1] for source in sources), default=0)
        while (row, column) in taken:
            column += 1
        taken.add((row, column))
        cells.append((row, column))
    return cells


def _edge(source: tuple[int, int], target: tuple[int, int], *, passes: bool) -> str:
    """Return the path of an edge; one that passes other nodes of its column swings out on their right."""
    (from_x, from_y), (to_x, to_y) = source, target
    if passes and from_x == to_x:
        right, out = from_x + WIDTH_PX, from_x + WIDTH_PX + 2 * _EDGE_PX
        start, end = from_y + HEIGHT_PX // 2, to_y + HEIGHT_PX // 2
        leave = f"M{right} {start}C{out} {start} {out} {start} {out} {start + 20}"
        return f"{leave}V{end - 20}C{out} {end} {out} {end} {right} {end}"
    start_x, end_x = from_x + WIDTH_PX // 2, to_x + WIDTH_PX // 2
    start, middle = from_y + HEIGHT_PX, (from_y + HEIGHT_PX + to_y) // 2
    if start_x == end_x:
        return f"M{start_x} {start}V{to_y}"
    bend = to_y - (to_y - start) // 2 if not passes else to_y - 9
    return f"M{start_x} {start}C{start_x} {middle} {start_x} {bend} {end_x} {to_y}"
