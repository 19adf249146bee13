"""ONNX Runtime, on the processor or through another of its execution providers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from powerlab.backends.base import LoadOptions
from powerlab.backends.cuda_driver import card_name
from powerlab.backends.offers import check_offers, check_threads
from powerlab.backends.onnx_model import QUANTIZED, OnnxModel, onnx_model
from powerlab.backends.packages import required
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs

_PROVIDERS = {Processor.CPU: "CPUExecutionProvider", Processor.GPU: "CUDAExecutionProvider"}
_ERRORS_ONLY = 3
_NO_SPIN = 0
_FLOAT_INPUTS = "1"
"""Where weights alone are integers, what they are multiplied with stays float32; by itself it would be rounded."""


class OnnxRuntimeBackend:
    """A session of ONNX Runtime; fulfils :class:`powerlab.backends.base.Backend`.

    Attributes:
        processor_name: the graphics processor's; nothing for the cores.
        session: ONNX Runtime's own.
    """

    def __init__(self, session: Any, model: OnnxModel, processor_name: str = "") -> None:
        self.processor_name = processor_name
        self.session = session
        self._model = model

    def inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return the seeded inputs."""
        return synthetic_inputs(self._model.inputs, seed, self._model.dtypes)

    def run(self, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run one inference."""
        return dict(zip(self._model.outputs, self.session.run(self._model.outputs, inputs), strict=True))


def load(options: LoadOptions) -> OnnxRuntimeBackend:
    """Load a model on the cores, or on NVIDIA's first card; raises as :func:`load_with` does."""
    return load_with("onnxruntime", _PROVIDERS[options.processor], options)


def load_with(
    engine: str, provider: str, options: LoadOptions, half: Mapping[str, Any] | None = None
) -> OnnxRuntimeBackend:
    """Load a model into a session whose nodes all run where ``provider`` says, on exactly the threads given.

    Args:
        engine: the engine's name.
        provider: the execution provider.
        options: what is asked for.
        half: options by which a provider computes a model of float32 in 16 bits; None: the model is converted.

    Raises:
        PowerlabError: the engine is not installed, lacks the provider, does not offer what is asked for, or refuses the
            model.
    """
    on_card = provider != _PROVIDERS[Processor.CPU]
    check_offers(engine, options, ("fp32", "fp16") if on_card else ("fp32", *QUANTIZED), spins_us=(_NO_SPIN,))
    if on_card:
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # fp32 is to mean float32 on a card too: its libraries read this
    onnxruntime = required(engine, "onnxruntime")
    if provider not in onnxruntime.get_available_providers():
        raise PowerlabError(
            f"ONNX Runtime {onnxruntime.__version__} has no {provider} here (it has: "
            f"{', '.join(onnxruntime.get_available_providers())}); install a build that has it."
        )
    model = onnx_model(engine, options.model, options.batch_size, options.precision)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = options.threads, 1
    settings.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    settings.log_severity_level = _ERRORS_ONLY
    settings.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", _FLOAT_INPUTS)
    if options.spin_us == _NO_SPIN:
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if on_card:
        settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    in_half = options.precision == "fp16"
    content = half_content(model.content) if in_half and half is None else model.content
    chosen = (provider, dict(half)) if in_half and half is not None else provider
    try:
        session = onnxruntime.InferenceSession(content, settings, providers=[chosen])
    except Exception as error:  # its exceptions have no common base beside Exception
        raise PowerlabError(f"{engine} refuses {options.model}: {_first_line(error)}") from error
    if provider not in session.get_providers():
        raise PowerlabError(f"{engine} fell back to {session.get_providers()[0]} from {provider}; fix its set-up.")
    check_threads(engine, options.threads, session.get_session_options().intra_op_num_threads)
    return OnnxRuntimeBackend(session, model, card_name() if on_card else "")


def half_content(content: bytes) -> bytes:
    """Return a model whose numbers have 16 bits inside and 32 at its inputs and outputs, by ONNX Runtime's own tool.

    Raises:
        PowerlabError: onnx or ONNX Runtime is not installed.
    """
    onnx, float16 = required("onnxruntime", "onnx"), required("onnxruntime", "onnxruntime.transformers.float16")
    model = float16.convert_float_to_float16(onnx.load_from_string(content), keep_io_types=True)
    converted: bytes = model.SerializeToString()
    return converted


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
