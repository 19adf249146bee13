"""NVIDIA's TensorRT by itself: a network built from the ONNX file for the card at hand (TensorRT 8.5 or later).

JetPack brings its Python package along; on workstations ``pip install tensorrt`` does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.backends.base import LoadOptions
from powerlab.backends.cuda_driver import CudaCard
from powerlab.backends.offers import check_offers
from powerlab.backends.onnx_model import OnnxModel, onnx_model
from powerlab.backends.onnxruntime import half_content
from powerlab.backends.packages import required
from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs

_ENGINE = "tensorrt"


class TensorrtBackend:
    """A built network and memory on the card for its tensors; fulfils :class:`powerlab.backends.base.Backend`."""

    def __init__(self, tensorrt: Any, network: Any, model: OnnxModel, card: CudaCard) -> None:
        self.processor_name = card.name
        self._network = network  # has to outlive its context
        self._context = network.create_execution_context()
        if self._context is None:
            raise TooLargeError(f"TensorRT has not enough memory on {card.name} for this model; use a smaller batch.")
        self._card, self._model = card, model
        names = [network.get_tensor_name(index) for index in range(network.num_io_tensors)]
        self._shapes = {name: tuple(network.get_tensor_shape(name)) for name in names}
        self._dtypes: dict[str, np.dtype[Any]] = {
            name: np.dtype(tensorrt.nptype(network.get_tensor_dtype(name))) for name in names
        }
        self._addresses = {name: card.allocate(max(1, self._bytes(name))) for name in names}
        for name, address in self._addresses.items():
            self._context.set_tensor_address(name, address)

    def _bytes(self, name: str) -> int:
        elements: int = math.prod(self._shapes[name])
        return elements * self._dtypes[name].itemsize

    def inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return the seeded inputs."""
        return synthetic_inputs(self._model.inputs, seed, self._model.dtypes)

    def run(self, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run one inference."""
        card = self._card
        card.enter()
        given = {name: np.ascontiguousarray(inputs[name], self._dtypes[name]) for name in self._model.inputs}
        made = {name: np.empty(self._shapes[name], self._dtypes[name]) for name in self._model.outputs}
        for name, array in given.items():
            card.send(self._addresses[name], array)
        if not self._context.execute_async_v3(card.stream):
            raise PowerlabError("TensorRT could not run the model; its own message stands in the log.")
        for name, array in made.items():
            card.fetch(array, self._addresses[name])
        card.wait()
        return made


def load(options: LoadOptions) -> TensorrtBackend:
    """Load a model onto the first card; TensorRT times its kernels now, which takes minutes for a large network.

    Raises:
        PowerlabError: TensorRT is not installed or too old, finds no card, does not offer what is asked for, or refuses
            the model.
    """
    check_offers(_ENGINE, options, ("fp32", "fp16"))
    tensorrt = required(_ENGINE, "tensorrt")
    if not hasattr(tensorrt.IExecutionContext, "execute_async_v3"):
        raise PowerlabError(f"TensorRT {tensorrt.__version__} is older than 8.5; install a newer one (JetPack 5.1).")
    card = CudaCard()
    model = onnx_model(_ENGINE, options.model, options.batch_size)
    logger = tensorrt.Logger(tensorrt.Logger.ERROR)
    plan = _built(tensorrt, logger, model.content, options)
    network = tensorrt.Runtime(logger).deserialize_cuda_engine(plan)
    if network is None:
        raise TooLargeError(f"TensorRT has not enough memory on {card.name} for {options.model}; use a smaller batch.")
    return TensorrtBackend(tensorrt, network, model, card)


def _built(tensorrt: Any, logger: Any, content: bytes, options: LoadOptions) -> Any:
    """Return the serialized network.

    In fp32 nothing is computed in TF32. In fp16 TensorRT takes kernels of 16 bits where it finds them faster; from 11
    on it computes in the model's own types alone, so it gets a model of 16-bit numbers.
    """
    flags, half = tensorrt.BuilderFlag, options.precision == "fp16"
    chooses = hasattr(flags, "FP16")
    if half and not chooses:
        content = half_content(content)
    builder = tensorrt.Builder(logger)
    network = builder.create_network(_explicit_batch(tensorrt))
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse(content):
        reason = parser.get_error(0).desc() if parser.num_errors else "it cannot be parsed"
        raise PowerlabError(f"TensorRT refuses {options.model}: {reason.strip().splitlines()[0][:200]}")
    config = builder.create_builder_config()
    config.clear_flag(flags.TF32)
    if half and chooses:
        config.set_flag(flags.FP16)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise PowerlabError(f"TensorRT could not build {options.model}; its own message stands in the log.")
    return plan


def _explicit_batch(tensorrt: Any) -> int:
    """Return the flags of a network whose batch is an axis like others, as ONNX's is: from TensorRT 10 on always."""
    flag = getattr(tensorrt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    return 0 if flag is None else 1 << int(flag)
