"""Workloads: what is done with a model, at a precision and batch size, in a scenario."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class WorkloadKind(StrEnum):
    """What is done with a model: answering by it, or training it step by step on one batch of random data."""

    INFERENCE = "inference"
    TRAIN = "train"


class Scenario(StrEnum):
    """How queries follow each other, as MLPerf Inference defines it (Reddi et al., ISCA 2020, section IV).

    - ``single-stream``: the next query comes when the last one is answered.
    - ``multi-stream``: the same, and each query holds eight images.
    - ``server``: queries come as a Poisson process, an inference each, and must be answered within a bound.
    - ``offline``: all images are there from the beginning.
    """

    SINGLE_STREAM = "single-stream"
    MULTI_STREAM = "multi-stream"
    SERVER = "server"
    OFFLINE = "offline"


class Processor(StrEnum):
    """What computes a model: the cores, or the first graphics processor that an engine finds.

    It is called ``device`` elsewhere (PyTorch, OpenVINO); here a device is a machine.
    """

    CPU = "cpu"
    GPU = "gpu"


_IN_SOFTWARE = ("llvmpipe", "lavapipe", "swiftshader")


def computes_in_software(processor_name: str) -> bool:
    """Tell whether what calls itself a graphics processor is a driver on the cores: Mesa's lavapipe, SwiftShader."""
    return any(word in processor_name.lower() for word in _IN_SOFTWARE)


MULTI_STREAM_IMAGES = 8
"""Images of one query of the multi-stream scenario (MLPerf Inference rules)."""


class Preparation(StrEnum):
    """Whether turning a picture into the model's input is timed."""

    OUTSIDE = "outside"
    INSIDE = "inside"


class Recompute(StrEnum):
    """Whether training computes activations again in the backward pass: less memory, and a forward pass more."""

    NO = "no"
    YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A model and how it is fed.

    Attributes:
        model: a name of the zoo, the path of an ONNX file, or ``NAME@sha256:DIGEST`` for one that lies on the server.
        batch_size: images per inference.
        precision: ``fp32``, or what else the engine offers.
        scenario: how queries follow each other.
        engine: the name of the backend that runs it.
        slices: parts a batch is cut into, which run at the same time on a share of the threads each.
        queues: of the graphics processor, over which the slices are spread.
        preparation: whether input preparation is inside the timed part.
        latency_bound_ms: what the server scenario's 99th percentile must hold; 0 in every other scenario.
        processor: what computes the model.
        kind: what is done with the model; where it is trained, a query is a step.
        optimizer: how a step moves the weights; empty where nothing is trained.
        recompute: whether a step computes activations again; where nothing is trained, it does not.
        nodes: devices that share each batch, of a size like the others' each, and move their weights alike.
    """

    model: str
    batch_size: int
    precision: str = "fp32"
    scenario: Scenario = Scenario.SINGLE_STREAM
    engine: str = "builtin"
    slices: int = 1
    queues: int = 1
    preparation: Preparation = Preparation.OUTSIDE
    latency_bound_ms: float = 0.0
    processor: Processor = Processor.CPU
    kind: WorkloadKind = WorkloadKind.INFERENCE
    optimizer: str = ""
    recompute: Recompute = Recompute.NO
    nodes: int = 1

    @property
    def trains(self) -> bool:
        """Whether the model is trained."""
        return self.kind is WorkloadKind.TRAIN

    @property
    def recomputes(self) -> bool:
        """Whether activations are computed again."""
        return self.recompute is Recompute.YES

    @property
    def images_per_query(self) -> int:
        """Images that come together and are answered together: eight in multi-stream, one inference's otherwise."""
        return MULTI_STREAM_IMAGES if self.scenario is Scenario.MULTI_STREAM else self.batch_size

    @property
    def inferences_per_query(self) -> int:
        """Inferences that one query takes."""
        return math.ceil(self.images_per_query / self.batch_size)
