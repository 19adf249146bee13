"""OpenVINO on the cores, or on an Intel graphics processor."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from powerlab.backends.base import LoadOptions
from powerlab.backends.offers import check_offers, check_threads
from powerlab.backends.onnx_model import QUANTIZED, OnnxModel, onnx_model
from powerlab.backends.packages import required
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs

_TYPES = {"fp32": "f32", "bf16": "bf16", "fp16": "f16", **dict.fromkeys(QUANTIZED, "f32")}
"""powerlab's word for a precision and OpenVINO's; of a quantized model, the one of what is not quantized."""

_CAPABILITIES = {"fp32": "FP32", "bf16": "BF16", "fp16": "FP16", "int8": "INT8", "int8w": "FP32", "int4w": "FP32"}
"""What ``OPTIMIZATION_CAPABILITIES`` says of a processor that computes in a precision."""


class OpenvinoBackend:
    """A compiled model of OpenVINO; fulfils :class:`powerlab.backends.base.Backend`."""

    def __init__(self, compiled: Any, model: OnnxModel, processor_name: str = "") -> None:
        self.processor_name = processor_name
        self._request = compiled.create_infer_request()
        self._model = model

    def inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return the seeded inputs."""
        return synthetic_inputs(self._model.inputs, seed, self._model.dtypes)

    def run(self, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run one inference; the ports are in the file's order, under names that OpenVINO may have joined."""
        results = self._request.infer([inputs[name] for name in self._model.inputs], share_inputs=True)
        return {name: results[index] for index, name in enumerate(self._model.outputs)}


def load(options: LoadOptions) -> OpenvinoBackend:
    """Load a model as one stream, for latency; on the cores with exactly the threads given.

    Raises:
        PowerlabError: OpenVINO is not installed, does not offer what is asked for, or refuses the model.
    """
    openvino = required("openvino", "openvino")
    core = openvino.Core()
    on_card = options.processor is Processor.GPU
    if on_card and not any(name.partition(".")[0] == "GPU" for name in core.available_devices):
        raise PowerlabError(
            f"OpenVINO finds no graphics processor here (it has: {', '.join(core.available_devices)}); it uses Intel's "
            "alone, through Intel's compute runtime for OpenCL."
        )
    device = "GPU" if on_card else "CPU"
    capabilities = core.get_property(device, "OPTIMIZATION_CAPABILITIES")
    check_offers("openvino", options, [name for name, word in _CAPABILITIES.items() if word in capabilities])
    model = onnx_model("openvino", options.model, options.batch_size, options.precision)
    settings: dict[str, object] = {
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": _TYPES[options.precision],
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,  # else what integer weights are multiplied with would be rounded
    }
    if not on_card:
        settings["INFERENCE_NUM_THREADS"] = options.threads
    try:
        compiled = core.compile_model(core.read_model(model.content), device, settings)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1][:200]
        raise PowerlabError(f"openvino refuses {options.model}: {reason}") from error
    if on_card:
        return OpenvinoBackend(compiled, model, str(core.get_property(device, "FULL_DEVICE_NAME")))
    check_threads("openvino", options.threads, compiled.get_property("INFERENCE_NUM_THREADS"))
    return OpenvinoBackend(compiled, model)
