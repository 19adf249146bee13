"""PyTorch on the cores or a graphics processor, in eager mode, under ``torch.inference_mode``.

The model is powerlab's optimised graph, one torch operator a node, as a deployed model has its batch norms folded into
its convolutions too. Images and kernels lie in the order ``channels_last``, which PyTorch's performance tuning guide
advises for convolutions on processors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from powerlab.backends.attention import join_attentions
from powerlab.backends.base import LoadOptions
from powerlab.backends.offers import check_offers, check_threads
from powerlab.backends.packages import required
from powerlab.backends.translation import rule_for
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.ir.graph import Graph, Node, quoted
from powerlab.engine.ops.activation import NO_CLAMP, NO_SLOPE, slope_of
from powerlab.engine.passes import optimise_for_others

Tensor = Any
Operator = Callable[..., Tensor]

PRECISIONS = {Processor.CPU: ("fp32", "bf16"), Processor.GPU: ("fp32", "fp16", "bf16")}


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
        self._dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
        self._shapes = {info.name: info.shape for info in graph.inputs}
        self._outputs = [info.name for info in graph.outputs]
        constants = {name: self.tensor(value) for name, value in graph.constants.items()}
        self._steps = _steps(graph, torch, constants)
        self._constants = {name: constants[name] for node in graph.nodes for name in node.inputs if name in constants}
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
    check_offers(engine, options, PRECISIONS[options.processor])
    torch = required(engine, "torch")
    device = "cpu" if options.processor is Processor.CPU else card(engine, torch)
    torch.set_num_threads(options.threads)
    check_threads(engine, options.threads, torch.get_num_threads())
    graph = join_attentions(optimise_for_others(load_graph(options.model, batch_size=options.batch_size)))
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


def _steps(graph: Graph, torch: Any, constants: dict[str, Tensor]) -> tuple[_Step, ...]:
    kept = graph.output_names() | set(constants)
    last_reader = {name: node for node in graph.nodes for name in node.inputs if name}
    return tuple(
        _Step(
            rule_for("torch", _OPERATORS, node)(torch, node, graph),
            tuple(name for name in node.inputs if name),
            node.outputs,
            tuple({name for name in node.inputs if name and name not in kept and last_reader[name] is node}),
        )
        for node in graph.nodes
    )


def _activated(torch: Any, node: Node) -> Callable[[Tensor], Tensor]:
    """Return the node's slope and clamp as a function that may change its argument."""
    low, high = cast("tuple[float, float]", node.attributes["clamp"])
    slope = slope_of(node)
    if slope != NO_SLOPE:
        leaky = torch.nn.functional.leaky_relu_
        return lambda x: torch.clamp_(leaky(x, slope), low, high)
    if (low, high) == NO_CLAMP:
        return lambda x: x
    if (low, high) == (0.0, math.inf):
        return cast("Callable[[Tensor], Tensor]", torch.relu_)
    return lambda x: torch.clamp_(x, low, high)


def _padded(torch: Any, pads: tuple[int, ...], fill: float) -> Callable[[Tensor], Tensor]:
    """Return a function that pads (top, left, bottom, right) of an image."""
    top, left, bottom, right = pads
    return lambda x: torch.nn.functional.pad(x, (left, right, top, bottom), value=fill)


def _conv(torch: Any, node: Node, _graph: Graph) -> Operator:
    top, left, bottom, right = pads = integers(node, "pads")
    strides, dilations = integers(node, "strides"), integers(node, "dilations")
    group, activate = int(number(node, "group")), _activated(torch, node)
    even, has_bias = (top, left) == (bottom, right), bool(node.input(2))
    pad, inner = _padded(torch, pads, 0.0), (top, left) if even else (0, 0)

    def compute(x: Tensor, weight: Tensor, *more: Tensor) -> Tensor:
        bias, residual = (more[0] if has_bias else None), more[has_bias:]
        y = torch.conv2d(x if even else pad(x), weight, bias, strides, inner, dilations, group)
        return activate(y.add_(residual[0]) if residual else y)

    return compute


def _elementwise(torch: Any, node: Node, _graph: Graph) -> Operator:
    """Return a function of floats that broadcast.

    Raises:
        PowerlabError: it is none of those that are translated.
    """
    stem, _, kinds = str(node.attributes["kernel"]).partition("_strided_")
    functions = {
        "add": torch.add,
        "div": torch.div,
        "max": torch.maximum,
        "min": torch.minimum,
        "mul": torch.mul,
        "pow": torch.pow,
        "sub": torch.sub,
    }
    if stem not in functions or kinds != "f32":
        raise PowerlabError(f"{node} computes {stem!r} of {kinds}, which is not translated for torch yet.")
    return cast("Operator", functions[stem])


def _gather(_torch: Any, node: Node, graph: Graph) -> Operator:
    """Return what picks one place that the model knows.

    Raises:
        PowerlabError: a run gives the places, or there are several.
    """
    places = graph.constants.get(node.inputs[1])
    if places is None or places.shape:
        raise PowerlabError(f"{node} picks other places than one that the model knows, which torch is not told yet.")
    axis, place = int(number(node, "axis")), int(places)
    return lambda x, _places: x.select(axis, place)


def _gemm(torch: Any, node: Node, _graph: Graph) -> Operator:
    activate, linear = _activated(torch, node), torch.nn.functional.linear
    return lambda x, weight, bias=None: activate(linear(x, weight, bias))


def _add(torch: Any, node: Node, _graph: Graph) -> Operator:
    activate = _activated(torch, node)
    return lambda x, y: activate(torch.add(x, y))


def _attention(torch: Any, node: Node, _graph: Graph) -> Operator:
    alpha, orders = number(node, "alpha"), [integers(node, side) for side in ("queries", "keys", "values")]
    attend = torch.nn.functional.scaled_dot_product_attention

    def compute(*sides: Tensor) -> Tensor:
        return attend(*(x.permute(order) if order else x for x, order in zip(sides, orders, strict=True)), scale=alpha)

    return compute


def _clamp(torch: Any, node: Node, _graph: Graph) -> Operator:
    activate = _activated(torch, node)
    return lambda x: activate(x.clone())


def _multiply(torch: Any, node: Node, _graph: Graph) -> Operator:
    activate = _activated(torch, node)
    return lambda x, y: activate(torch.mul(x, y))


def _function(torch: Any, node: Node, _graph: Graph) -> Operator:
    """Return a function of one number that torch has under a name of its own."""
    functional = torch.nn.functional
    named = {
        "Erf": torch.erf,
        "Exp": torch.exp,
        "Gelu": functional.gelu,
        "HardSwish": functional.hardswish,
        "Sigmoid": torch.sigmoid,
        "Silu": functional.silu,
        "Tanh": torch.tanh,
    }
    return cast("Operator", named[node.op_type])


def _elu(torch: Any, node: Node, _graph: Graph) -> Operator:
    alpha, elu = number(node, "alpha"), torch.nn.functional.elu
    return lambda x: elu(x, alpha)


def _hard_sigmoid(torch: Any, node: Node, _graph: Graph) -> Operator:
    alpha, beta = number(node, "alpha"), number(node, "beta")
    return lambda x: torch.clamp_(x * alpha + beta, 0.0, 1.0)


def _scale_shift(torch: Any, node: Node, graph: Graph) -> Operator:
    activate, axes = _activated(torch, node), (-1, *(1,) * (len(graph.shape(node.outputs[0])) - 2))
    return lambda x, scale, shift: activate(torch.addcmul(shift.view(axes), x, scale.view(axes)))


def _max_pool(torch: Any, node: Node, _graph: Graph) -> Operator:
    kernel, strides, pads = (integers(node, name) for name in ("kernel", "strides", "pads"))
    pool, pad = torch.nn.functional.max_pool2d, _padded(torch, pads, -math.inf)
    if _torch_pads(kernel, pads):
        return lambda x: pool(x, kernel, strides, pads[:2])
    return lambda x: pool(pad(x), kernel, strides)


def _average_pool(torch: Any, node: Node, graph: Graph) -> Operator:
    kernel, strides, pads = (integers(node, name) for name in ("kernel", "strides", "pads"))
    counts = bool(node.attributes["count_include_pad"])
    pool, pad = torch.nn.functional.avg_pool2d, _padded(torch, pads, 0.0)
    if _torch_pads(kernel, pads):
        return lambda x: pool(x, kernel, strides, pads[:2], count_include_pad=counts)
    if counts:
        return lambda x: pool(pad(x), kernel, strides)
    share = pool(pad(torch.ones((1, 1, *graph.shape(node.inputs[0])[2:]))), kernel, strides)
    return lambda x: pool(pad(x), kernel, strides) / share.to(x.dtype)


def _torch_pads(kernel: tuple[int, ...], pads: tuple[int, ...]) -> bool:
    """Tell whether a pool of torch pads like this: alike on both sides, and by half a window at most."""
    return pads[:2] == pads[2:] and all(2 * pad <= size for pad, size in zip(pads[:2], kernel, strict=True))


def _global_average_pool(torch: Any, _node: Node, _graph: Graph) -> Operator:
    return lambda x: torch.mean(x, (2, 3), keepdim=True)


def _lrn(torch: Any, node: Node, _graph: Graph) -> Operator:
    """ONNX's window of an even size reaches further to later channels, torch's to earlier ones: hence padded here."""
    size, (alpha, beta, bias) = int(number(node, "size")), (number(node, name) for name in ("alpha", "beta", "bias"))
    before, functional = (size - 1) // 2, torch.nn.functional

    def compute(x: Tensor) -> Tensor:
        wide = x.to(torch.float32)  # torch averages nothing else on a processor
        squares = functional.pad((wide * wide).unsqueeze(1), (0, 0, 0, 0, before, size - 1 - before))
        mean = functional.avg_pool3d(squares, (size, 1, 1), stride=1).squeeze(1)
        return (wide / (mean * alpha + bias) ** beta).to(x.dtype)

    return compute


def _resize(torch: Any, node: Node, _graph: Graph) -> Operator:
    factors, interpolate = tuple(map(float, integers(node, "factors"))), torch.nn.functional.interpolate
    return lambda x: interpolate(x, scale_factor=factors, mode="nearest")


def _product(torch: Any, node: Node, _graph: Graph) -> Operator:
    alpha, orders = number(node, "alpha"), [integers(node, side) for side in ("left", "right")]

    def compute(*sides: Tensor) -> Tensor:
        left, right = (x.permute(order) if order else x for x, order in zip(sides, orders, strict=True))
        made = torch.matmul(left, right)
        return made if alpha == 1 else made.mul_(alpha)

    return compute


def _row_norm(torch: Any, node: Node, graph: Graph) -> Operator:
    shape = graph.shape(node.outputs[0])[int(number(node, "axis")) :]
    epsilon, has_scale = number(node, "epsilon"), bool(node.input(1))
    if node.attributes["kernel"] == "rms_norm":
        return lambda x, scale=None: torch.nn.functional.rms_norm(x, shape, scale, epsilon)

    def compute(x: Tensor, *vectors: Tensor) -> Tensor:
        scale, shift = (*(() if has_scale else (None,)), *vectors, None, None)[:2]
        return torch.nn.functional.layer_norm(x, shape, scale, shift, epsilon)

    return compute


def _softmax(torch: Any, node: Node, _graph: Graph) -> Operator:
    axis = int(number(node, "axis"))
    return lambda x: torch.softmax(x, axis)


def _concat(torch: Any, node: Node, _graph: Graph) -> Operator:
    axis = int(number(node, "axis"))
    return lambda *parts: torch.cat(parts, axis)


def _transpose(_torch: Any, node: Node, _graph: Graph) -> Operator:
    order = integers(node, "perm")
    return lambda x: x.permute(order)


def _lstm(torch: Any, node: Node, graph: Graph) -> Operator:
    """Torch has no LSTM backwards alone: it gets the steps in the opposite order.

    Weights are brought into its order of gates in the first run.
    """
    directions, _, hidden = graph.shape(node.inputs[2])
    has_bias, has_state = bool(node.inputs[3]), bool(node.inputs[4])
    backwards = node.attributes["direction"] == "reverse"
    weights: list[Tensor] = []

    def compute(x: Tensor, of_inputs: Tensor, of_states: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
        if not weights:
            pairs = [of_inputs, of_states, *(more[0].chunk(2, dim=1) if has_bias else ())]
            weights.extend(gates_of_torch(torch, part[i]) for i in range(directions) for part in pairs)
        steps, batch, _ = x.shape
        zeros = x.new_zeros(directions, batch, hidden)
        state = more[has_bias:] if has_state else (zeros, zeros)
        x = x.flip(0) if backwards else x
        y, last, cells = torch.lstm(x, state, weights, has_bias, 1, 0.0, False, directions == 2, False)
        y = y.reshape(steps, batch, directions, hidden).transpose(1, 2)
        return y.flip(0) if backwards else y, last, cells

    return compute


def gates_of_torch(torch: Any, rows: Tensor) -> Tensor:
    """Return weights or biases with ONNX's gates (input, output, forget, cell) as input, forget, cell, output."""
    given, shown, kept, candidate = rows.chunk(4)
    return torch.cat((given, kept, candidate, shown)).contiguous()


def _reshape(_torch: Any, node: Node, graph: Graph) -> Operator:
    shape = graph.shape(node.outputs[0])
    return lambda x: x.reshape(shape)


_OPERATORS: dict[str, Callable[[Any, Node, Graph], Operator]] = {
    "Add": _add,
    "Attention": _attention,
    "AveragePool": _average_pool,
    "Clamp": _clamp,
    "Concat": _concat,
    "Elementwise": _elementwise,
    "Elu": _elu,
    "Erf": _function,
    "Exp": _function,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "FusedLstm": _lstm,
    "Gather": _gather,
    "Gelu": _function,
    "GlobalAveragePool": _global_average_pool,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _function,
    "LRN": _lrn,
    "MaxPool": _max_pool,
    "Multiply": _multiply,
    "Product": _product,
    "Reshape": _reshape,
    "Resize": _resize,
    "RowNorm": _row_norm,
    "ScaleShift": _scale_shift,
    "Sigmoid": _function,
    "Silu": _function,
    "Softmax": _softmax,
    "Tanh": _function,
    "Transpose": _transpose,
}
