"""Write the outlines of the zoo's networks, powerlab/networks/data/*.json; a line of a file is a node.

A node without multiplications that reads one result, which nothing else reads, becomes part of the node that made it:
a convolution then stands with its normalization and activation.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.ir.graph import Graph
from powerlab.engine.ir.statistics import macs

FOLDER = Path(__file__).parent.parent / "powerlab" / "networks" / "data"
_OWN = ("MaxPool", "AveragePool", "GlobalAveragePool", "Concat", "Add", "Resize", "Upsample", "Softmax")
"""Operators that are a node of their own though they multiply nothing: a reader looks for them."""
Row = list[Any]
"""Names, operators, shape, multiply-adds and inputs of a node."""


def rows(graph: Graph) -> list[Row]:
    """Return the nodes of a graph's outline, in execution order."""
    made = {name for node in graph.nodes for name in node.outputs}
    readers = Counter(name for node in graph.nodes for name in set(node.inputs))
    place: dict[str, int] = {}
    found: list[Row] = []
    for node in graph.nodes:
        read = [name for name in dict.fromkeys(node.inputs) if name in made]
        cost, shape = macs(graph, node), list(graph.shape(node.outputs[0]))
        if len(read) == 1 and readers[read[0]] == 1 and not cost and node.op_type not in _OWN:
            here = place[read[0]]
            found[here][0].append(node.name)
            found[here][1].append(node.op_type)
            found[here][2] = shape
        else:
            here = len(found)
            found.append([[node.name], [node.op_type], shape, cost, list(dict.fromkeys(place[name] for name in read))])
        place.update(dict.fromkeys(node.outputs, here))
    return found


def written(name: str) -> str:
    """Return the file of a network."""
    graph = ZOO[name].build((1, *ZOO[name].input_shape))
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows(graph))
    return f"[\n{lines}\n]\n"


def main() -> int:
    """Write every file; return the exit status."""
    FOLDER.mkdir(exist_ok=True)
    for name in ZOO:
        (FOLDER / f"{name}.json").write_text(written(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
