"""PyTorch on the cores or a graphics processor, in eager mode, under ``torch.inference_mode``.

The model is powerlab's optimised graph, one torch operator a node, as a deployed model has its batch norms folded into
its convolutions too. Images and kernels lie in the order ``channels_last``, which PyTorch's performance tuning guide
advises for convolutions on processors. Quantized networks are computed in bytes (:mod:`.torch_bytes`) on the cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.backends.attention import join_attentions
from powerlab.backends.base import LoadOptions
from powerlab.backends.offers import check_offers, check_threads
from powerlab.backends.packages import required
from powerlab.backends.torch_bytes import BYTES, check_operators
from powerlab.backends.torch_floats import FLOATS, Operator, Tensor
from powerlab.backends.torch_post_ops import with_post_ops
from powerlab.backends.translation import KNOWN_OF_BYTES, rule_for
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.ir.graph import Graph, quoted
from powerlab.engine.passes import optimise_for_others
from powerlab.engine.quantization.precisions import in_precision

PRECISIONS = {Processor.CPU: ("fp32", "bf16"), Processor.GPU: ("fp32", "fp16", "bf16")}
"""Those in floats; ``int8`` is computed on the cores alone, and eagerly."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One operator: what it reads, what it makes, and which tensors nobody reads after it."""

    compute: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    last_read: tuple[str, ...]


class TorchBackend:
    """A model as a list of torch operators; fulfils :class:`powerlab.backends.base.Backend`.

    Attributes:
        processor_name: what torch calls a graphics processor; nothing for the cores.
        network: makes the outputs of tensors that lie where the model does; compiled where that is asked for.
    """

    def __init__(
        self, graph: Graph, torch: Any, precision: str, device: str = "cpu", *, compiled: bool = False
    ) -> None:
        self.processor_name = name_of(torch, device)
        self._torch, self._device = torch, device
        self._dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
        takes_bytes = device == "cpu" and self._dtype == torch.float32 and not compiled
        self._shapes = {info.name: info.shape for info in graph.inputs}
        self._outputs = [info.name for info in graph.outputs]
        graph = with_post_ops(graph) if takes_bytes else graph
        self._steps = _steps(graph, torch, takes_bytes=takes_bytes)
        read = {name for step in self._steps for name in step.inputs if name in graph.kept_constants}
        self._constants = {name: self.tensor(graph.constants[name]) for name in read}
        self.network = torch.compile(self.compute, dynamic=False) if compiled else self.compute

    def inputs(self, seed: int) -> dict[str, NDArray[np.float32]]:
        """Return the seeded inputs."""
        return synthetic_inputs(self._shapes, seed)

    def run(self, inputs: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """Run one inference; copying the outputs back waits for a graphics processor."""
        with self._torch.inference_mode():
            made = self.network({name: self.tensor(value) for name, value in inputs.items()})
            return {name: value.to(self._torch.float32).contiguous().cpu().numpy() for name, value in made.items()}

    def compute(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs of tensors that lie where the model does, eagerly."""
        values = inputs | self._constants
        for step in self._steps:
            made = step.compute(*(values[name] for name in step.inputs))
            values.update(zip(step.outputs, made if isinstance(made, tuple) else (made,), strict=False))
            for name in step.last_read:
                del values[name]
        return {name: values[name] for name in self._outputs}

    def tensor(self, value: NDArray[np.float32]) -> Tensor:
        """Return an array where the model lies, in its precision and order."""
        tensor = self._torch.from_numpy(np.require(value, requirements=("C", "W"))).to(self._device, self._dtype)
        return tensor.contiguous(memory_format=self._torch.channels_last) if value.ndim == 4 else tensor


def load(options: LoadOptions) -> TorchBackend:
    """Load a model; raises as :func:`load_with` does."""
    return load_with("torch", options)


def load_with(engine: str, options: LoadOptions, *, compiled: bool = False) -> TorchBackend:
    """Load a model; on the cores torch uses exactly the threads given, in one operator at a time.

    Raises:
        PowerlabError: torch is not installed or does not offer what is asked for, finds no graphics processor, the
            model cannot be read, or its compiler fails.
    """
    in_bytes = options.processor is Processor.CPU and not compiled
    check_offers(engine, options, (*PRECISIONS[options.processor], *(("int8",) if in_bytes else ())))
    torch = required(engine, "torch")
    device = "cpu" if options.processor is Processor.CPU else card(engine, torch)
    torch.set_num_threads(options.threads)
    check_threads(engine, options.threads, torch.get_num_threads())
    loaded = load_graph(options.model, batch_size=options.batch_size)
    graph = join_attentions(optimise_for_others(in_precision(loaded, options.model, options.precision)))
    backend = TorchBackend(graph, torch, options.precision, device, compiled=compiled)
    if compiled:
        try:
            backend.run(backend.inputs(0))  # it is compiled by the first inference, which is part of loading
        except (RuntimeError, TypeError) as error:
            raise not_compiled("run", graph, error) from error
    return backend


def name_of(torch: Any, device: str) -> str:
    """Return what torch calls a graphics processor; nothing for the cores."""
    return "" if device == "cpu" else str(getattr(torch, device).get_device_name())


def not_compiled(verb: str, graph: Graph, error: Exception) -> PowerlabError:
    """Return what says that the compiler failed, or that what it made does not run, as of an LSTM in PyTorch 2.13."""
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    return PowerlabError(f"torch.compile cannot {verb} {quoted(graph.name)}: {reason}; use torch, or another engine.")


def card(engine: str, torch: Any) -> str:
    """Return torch's word for the graphics processor: ``cuda`` (NVIDIA, and AMD's builds) or ``xpu`` (Intel).

    Raises:
        PowerlabError: torch finds none.
    """
    for device in ("cuda", "xpu"):
        if getattr(torch, device).is_available():
            # fp32 is to mean float32: by themselves convolutions would be computed in TF32, with 10 bits of mantissa.
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
            return device
    raise PowerlabError(
        f"{engine} finds no graphics processor: PyTorch {torch.__version__} sees neither CUDA, ROCm nor an Intel GPU; "
        "install a build for yours from https://pytorch.org, and its driver."
    )


def _steps(graph: Graph, torch: Any, *, takes_bytes: bool) -> tuple[_Step, ...]:
    kept = graph.output_names() | set(graph.kept_constants)
    last_reader = {name: node for node in graph.nodes for name in node.inputs if name}
    if takes_bytes and any(node.op_type in BYTES for node in graph.nodes):
        check_operators(torch)
    steps = []
    for node in graph.nodes:
        inputs = tuple(name for name in node.inputs if name)
        if takes_bytes and node.op_type in BYTES:
            compute = rule_for("torch", BYTES, node, KNOWN_OF_BYTES | {"function"})(torch, node, graph)
            inputs = tuple(name for name in inputs if name not in graph.kept_constants)
        else:
            compute = rule_for("torch", FLOATS, node)(torch, node, graph)
        last_read = {name for name in inputs if name not in kept and last_reader[name] is node}
        steps.append(_Step(compute, inputs, node.outputs, tuple(last_read)))
    return tuple(steps)
