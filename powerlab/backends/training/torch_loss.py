"""The losses of the built-in engine as functions of torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from powerlab.backends.training.batch import LABELS, learning_output, target_of
from powerlab.backends.training.torch_functions import Tensor
from powerlab.engine.ir.graph import Graph
from powerlab.engine.training.losses.yolo import sizes_of_boxes, yolo_maps

Values = Mapping[str, Tensor]
_TARGETS, _WEIGHTS = "training.targets", "training.weights"


def labels_for_torch(graph: Graph, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a batch with its labels as :func:`torch_loss` takes them: boxes become what each map is compared with."""
    if target_of(graph).loss != "yolov3":
        return dict(inputs)
    given = {name: value for name, value in inputs.items() if name != LABELS}
    pairs = yolo_maps(inputs[LABELS], [info.shape[1:] for info in graph.outputs])
    for number, (targets, weights) in enumerate(pairs):
        given |= {f"{_TARGETS}{number}": targets, f"{_WEIGHTS}{number}": weights}
    return given


def torch_loss(torch: Any, graph: Graph) -> Callable[[Values, Values], Tensor]:
    """Return what computes the loss of a model from its tensors and from what a step is given."""
    functional, target = torch.nn.functional, target_of(graph)
    if target.loss == "yolov3":
        return _yolov3(torch, graph)
    output = learning_output(graph)
    if target.classes:
        return lambda values, given: functional.cross_entropy(values[output], given[LABELS])
    return lambda values, given: functional.mse_loss(values[output], given[LABELS])


def _yolov3(torch: Any, graph: Graph) -> Callable[[Values, Values], Tensor]:
    """As :mod:`powerlab.engine.training.losses.yolo` defines it."""
    batch, channels = graph.outputs[0].shape[:2]
    is_size = torch.from_numpy(sizes_of_boxes(channels)).reshape(1, -1, 1, 1)
    entropy = torch.nn.functional.binary_cross_entropy_with_logits

    def loss(values: Values, given: Values) -> Tensor:
        total = 0.0
        for number, info in enumerate(graph.outputs):
            output, wanted = values[info.name], given[f"{_TARGETS}{number}"]
            sizes = is_size.to(output.device)
            errors = torch.where(sizes, (output - wanted).square() / 2, entropy(output, wanted, reduction="none"))
            total = total + (errors * given[f"{_WEIGHTS}{number}"]).sum()
        return total / batch

    return loss
