"""How bytes lie: in blocks of 16 channels, but for the images of a first layer, whose few channels are one word.

Planes of a volume lie one behind the other, each with all its blocks, as images do: so the blocks of planes that are
neighbours are those of one image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.layout import NO_HALO, WORD_BYTES, shape4
from powerlab.engine.program.program import Tensor


def signed_bytes(form: str) -> bool:
    """Tell whether the bytes of activations are stored as signed ones, 128 less, where weights have this form."""
    return form.startswith("signed")


def word_tensors(graph: Graph) -> frozenset[str]:
    """Return the tensors of bytes that have a word a pixel: quantized images that only convolutions read.

    They may be padded with pixels of their own in between.
    """
    readers = graph.consumers()
    found: set[str] = set()
    for node in graph.nodes:
        name = node.outputs[0]
        begins = node.op_type == "Quantize" and shape4(graph.shape(name))[1] <= WORD_BYTES
        if (begins and _only_words(name, readers)) or (node.op_type == "QuantPad" and node.inputs[0] in found):
            found.add(name)
    return frozenset(found)


def _only_words(name: str, readers: Mapping[str, Sequence[Node]]) -> bool:
    return all(
        _only_words(reader.outputs[0], readers) if reader.op_type == "QuantPad" else _reads_words(name, reader)
        for reader in readers[name]
    )


def _reads_words(name: str, node: Node) -> bool:
    return (
        node.op_type in ("QuantConv", "QuantVolumeConv")
        and node.inputs[0] == name != node.input(4)
        and number(node, "group") == 1
        and integers(node, "dilations")[-1] == 1
    )


def volumes(shape: tuple[int, ...], of_bytes: Tensor, floats: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Give the planes of each volume as images: of bytes, and of floats, whose planes are rows of one image.

    What is no volume, or has one plane, is given as it is.
    """
    match shape:
        case (n, _, planes, rows, _) if planes > 1:
            for volume in range(n):
                first = volume * planes * of_bytes.layout.image
                yield (
                    of_bytes.seen_as(replace(of_bytes.layout, n=planes), first),
                    float_planes(floats, (volume, 0, planes), rows),
                )
        case _:
            yield of_bytes, floats


def float_planes(floats: Tensor, planes: tuple[int, int, int], rows: int) -> Tensor:
    """Return planes of a volume of floats as images.

    Args:
        floats: whose planes are rows of one image.
        planes: the volume, its first plane, and how many.
        rows: of a plane.
    """
    (volume, first, count), layout = planes, floats.layout
    image = rows * layout.row
    return floats.seen_as(replace(layout, n=count, h=rows, image=image), volume * layout.image + first * image)


def byte_fields(node: Node, out: Tensor, form: str) -> dict[str, Any]:
    """Return zero points, bounds and the content of the halo as fields of the native step.

    Args:
        node: an operator whose result is quantized.
        out: that result.
        form: how the weights of the tier's kernels on bytes lie.
    """
    zero = int(number(node, "zero"))
    stored = zero ^ 128 if signed_bytes(form) else zero
    word = int(np.array([stored] * WORD_BYTES, np.uint8).view(np.int32)[0])
    return {
        "numbers": [zero, int(_or(node, "y_zero", 0)), int(_or(node, "x_zero", 0))],
        "alpha": float(np.float32(_or(node, "y_ratio", 0))),
        "beta": float(np.float32(_or(node, "x_ratio", 0))),
        "low": number(node, "low"),
        "high": number(node, "high"),
        "slope": float(np.float32(_or(node, "slope", 1))),
        "halo": 0 if out.layout.halo == NO_HALO else word,
    }


def _or(node: Node, name: str, default: float) -> float:
    return number(node, name) if name in node.attributes else default
