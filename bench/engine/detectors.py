"""Detectors for :mod:`bench.engine.export_networks`: how many boxes they look at closely only a run tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

DETECTORS = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": 256,
    "fasterrcnn_resnet50_fpn": 256,
    "fcos_resnet50_fpn": 256,
    "keypointrcnn_resnet50_fpn": 256,
    "maskrcnn_resnet50_fpn": 256,
    "retinanet_resnet50_fpn": 256,
    "ssd300_vgg16": 300,
    "ssdlite320_mobilenet_v3_large": 320,
}
"""Name in torchvision, and pixels of a side of the image."""


class _Detector(nn.Module):
    """A detector of torchvision for one image."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(3, H, W), numbers from 0 to 1, to boxes, labels, scores, and masks or key points."""
        return tuple(self.inner([image])[0].values())


def detectors() -> dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]]:
    """Return name -> what makes the network, and the shape of its input."""
    from torchvision.models import detection

    def made(name: str, side: int) -> nn.Module:
        sizes: dict[str, Any] = {} if "320" in name or "300" in name else {"min_size": side, "max_size": side}
        return _Detector(getattr(detection, name)(weights=None, weights_backbone=None, **sizes))

    return {name: (lambda name=name, side=side: made(name, side), (3, side, side)) for name, side in DETECTORS.items()}
